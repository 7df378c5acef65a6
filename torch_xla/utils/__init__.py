from . import closures as closures
from . import serialization as serialization
from . import utils as utils
