"""The CPU engine as a backend of JAX's, with the functions of Python's that JAX's programs call back.

    from torch_xla.experimental import jax_plugin

    jax_plugin.register()  # before JAX computes anything
    jax.config.update("jax_platforms", "torch_xla_cpu,cpu")

JAX's own backend stays there, as `jax.pure_callback`, `jax.experimental.io_callback` and `jax.debug.print` hand their
functions arrays of it.
"""

import ctypes
import functools
from typing import Any

from torch_xla._binding import library_directory

from . import _jax_callbacks

_FFI_EXTENSION = 5

# Foreign functions that call functions of Python's.
_CALLBACKS = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")


class _Extension(ctypes.Structure):
    pass


_Extension._fields_ = [
    ("struct_size", ctypes.c_size_t),
    ("type", ctypes.c_int),
    ("next", ctypes.POINTER(_Extension)),
]


class _Api(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.POINTER(_Extension)),
    ]


class _HandlerArgs(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("target_name", ctypes.c_char_p),
        ("target_name_size", ctypes.c_size_t),
        ("handler", ctypes.c_void_p),
        ("platform_name", ctypes.c_char_p),
        ("platform_name_size", ctypes.c_size_t),
        ("traits", ctypes.c_int),
    ]


_RegisterHandler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_HandlerArgs))


class _ForeignFunctions(ctypes.Structure):
    _fields_ = [
        ("base", _Extension),
        ("type_register", ctypes.c_void_p),
        ("user_data_add", ctypes.c_void_p),
        ("register_handler", _RegisterHandler),
    ]


def register(name: str = "torch_xla_cpu", options: dict[str, Any] | None = None) -> None:
    """Makes the engine known to JAX as the platform `name`.

    Args:
      name: what `jax.devices(name)` and `jax_platforms` call it.
      options: what its client is created with, such as `{"cpu_device_count": 4}`.
    """
    from jax._src import xla_bridge

    path = _library_path()
    xla_bridge.register_plugin(name, library_path=path, options=options)
    share_foreign_functions(path)


def share_foreign_functions(library_path: str | None = None) -> list[str]:
    """Lets a plugin's programs call the foreign functions that jaxlib knows for CPUs by now: those by which programs
    call functions of Python's, and what `jax.ffi.register_ffi_target` has registered. It may be called again.

    Args:
      library_path: the plugin's; the engine's if not given.

    Returns: the names of the functions.
    """
    from jaxlib import _jax

    library = ctypes.CDLL(library_path or _library_path())
    register_handler = _foreign_functions(library).register_handler
    handlers = {
        name: _held_by(bundle["execute"])
        for name, bundle in _jax.custom_call_targets("cpu").items()
        if isinstance(bundle, dict) and "execute" in bundle
    }
    for name in set(_CALLBACKS) & set(handlers):
        handlers[name] = _address_of(_callback_handler(handlers[name]))
    for name, handler in handlers.items():
        size = _HandlerArgs.traits.offset + _HandlerArgs.traits.size
        args = _HandlerArgs(size, name.encode(), len(name.encode()), handler, b"cpu", 3, 0)
        if register_handler(ctypes.byref(args)):
            raise RuntimeError(f"The plugin takes no handler for {name!r}, or has another one.")
    return sorted(handlers)


@functools.cache
def _callback_handler(jaxlibs: int) -> Any:
    """One for each of jaxlib's, kept as long as the process, as the plugin keeps them."""
    return _jax_callbacks.calling_functions(_jax_callbacks.function_table_type(jaxlibs))


def _library_path() -> str:
    return str(library_directory() / "libpjrt_cpu.so")


def _foreign_functions(library: ctypes.CDLL) -> _ForeignFunctions:
    library.GetPjrtApi.restype = ctypes.POINTER(_Api)
    extension = library.GetPjrtApi().contents.extension_start
    while extension and extension.contents.type != _FFI_EXTENSION:
        extension = extension.contents.next
    if not extension:
        raise RuntimeError("The plugin has no foreign functions (PJRT's extension FFI).")
    return ctypes.cast(extension, ctypes.POINTER(_ForeignFunctions)).contents


def _address_of(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _held_by(capsule: Any) -> int:
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer_of(capsule, None)
