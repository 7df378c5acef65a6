"""The version of the package. It follows the PyTorch release that it was written against."""

__version__ = "2.13.0"
