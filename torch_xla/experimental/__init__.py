"""Plugins, and programs compiled for devices that are not here."""

from . import plugins as plugins
