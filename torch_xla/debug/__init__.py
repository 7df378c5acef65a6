from . import metrics as metrics
