from . import plugins as plugins
