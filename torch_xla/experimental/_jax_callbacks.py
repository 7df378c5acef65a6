"""The foreign function by which JAX's programs call functions of Python's, for engines that keep no states.

jaxlib's own asks the engine for a state that only jaxlib can make. This one calls the same functions, which JAX gives to
each run of a program: a table of them under the number of its type (XLA's `FfiLoadedHostCallbacks`).
The structs are those of cpu/foreign_interface.h.
"""

import ctypes
import traceback
from typing import Any

import numpy as np

_P = ctypes.POINTER


class _Header(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p)]


class _Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("header", _Header),
        ("type", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dimensions", _P(ctypes.c_int64)),
    ]


class _Values(ctypes.Structure):
    _fields_ = [
        ("header", _Header),
        ("size", ctypes.c_int64),
        ("kinds", _P(ctypes.c_int)),
        ("values", _P(_P(_Buffer))),
    ]


class _Scalar(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("value", _P(ctypes.c_uint64))]


class _Attributes(ctypes.Structure):
    _fields_ = [
        ("header", _Header),
        ("size", ctypes.c_int64),
        ("kinds", _P(ctypes.c_int)),
        ("names", _P(_P(_Bytes))),
        ("values", _P(_P(_Scalar))),
    ]


class _ErrorCreateArgs(ctypes.Structure):
    _fields_ = [("header", _Header), ("message", ctypes.c_char_p), ("code", ctypes.c_int)]


class _ErrorMessageArgs(ctypes.Structure):
    _fields_ = [("header", _Header), ("error", ctypes.c_void_p), ("message", ctypes.c_char_p)]


class _ContextGetArgs(ctypes.Structure):
    _fields_ = [
        ("header", _Header),
        ("context", ctypes.c_void_p),
        ("type_id", _P(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
    ]


_ErrorCreate = ctypes.CFUNCTYPE(ctypes.c_void_p, _P(_ErrorCreateArgs))
_ErrorMessage = ctypes.CFUNCTYPE(None, _P(_ErrorMessageArgs))
_ContextGet = ctypes.CFUNCTYPE(ctypes.c_void_p, _P(_ContextGetArgs))
_Other = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class _Api(ctypes.Structure):
    _fields_ = [
        ("header", _Header),
        ("version_header", _Header),
        ("version", ctypes.c_int * 2),
        ("internal", ctypes.c_void_p),
        ("error_create", _ErrorCreate),
        ("error_message", _ErrorMessage),
        ("error_destroy", _Other),
        ("handler_register", _Other),
        ("stream_get", _Other),
        ("type_register", _Other),
        ("context_get", _ContextGet),
        ("state_set", _Other),
        ("state_get", _Other),
        ("others", _Other * 9),
    ]


class _CallFrame(ctypes.Structure):
    _fields_ = [
        ("header", _Header),
        ("api", _P(_Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("operands", _Values),
        ("results", _Values),
        ("attributes", _Attributes),
        ("future", ctypes.c_void_p),
    ]


Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, _P(_CallFrame))


class _Functions(ctypes.Structure):
    """XLA's FfiLoadedHostCallbacks."""

    _fields_ = [("functions", _P(ctypes.py_object)), ("count", ctypes.c_size_t)]


_EXECUTE = 3
_SCALAR = 3
_INTERNAL = 13
_UINT64 = 9
_TOKEN = 17
_TYPES = {
    1: "bool",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "uint8",
    7: "uint16",
    8: "uint32",
    9: "uint64",
    10: "float16",
    11: "float32",
    12: "float64",
    15: "complex64",
    16: "bfloat16",
    18: "complex128",
    19: "float8_e5m2",
    20: "float8_e4m3fn",
}


def _header(struct: type[ctypes.Structure], last: str) -> _Header:
    field = getattr(struct, last)
    return _Header(field.offset + field.size, None)


def function_table_type(jaxlibs_handler: int) -> int:
    """The number under which jaxlib gives the functions to a run: what its own handler asks for.

    The handler is called with an attribute that it does not take, so that it calls nobody. Before it says so it has asked
    for all else that it takes, by the table of functions that it is given here.
    """
    asked: list[int] = []

    def context_get(args: Any) -> None:
        asked.append(args.contents.type_id[0])

    def error_message(args: Any) -> None:
        args.contents.message = b"not here"

    error = ctypes.c_char(0)
    failing = _Other(lambda _: ctypes.addressof(error))
    api = _Api(
        header=_Header(ctypes.sizeof(_Api), None),
        version_header=_Header(24, None),
        version=(ctypes.c_int * 2)(0, 3),
        error_create=_ErrorCreate(lambda _: ctypes.addressof(error)),
        error_message=_ErrorMessage(error_message),
        error_destroy=_Other(lambda _: None),
        context_get=_ContextGet(context_get),
        others=(_Other * 9)(*[failing] * 9),
        **dict.fromkeys(
            ("handler_register", "stream_get", "type_register", "state_set", "state_get"), failing
        ),
    )
    number = ctypes.c_uint64(0)
    name = _Bytes(b"no index", 8)
    attributes = _Attributes(
        _header(_Attributes, "values"),
        1,
        (ctypes.c_int * 1)(_SCALAR),
        (_P(_Bytes) * 1)(ctypes.pointer(name)),
        (_P(_Scalar) * 1)(ctypes.pointer(_Scalar(_UINT64, ctypes.pointer(number)))),
    )
    nothing = _Values(_header(_Values, "values"), 0, None, None)
    frame = _CallFrame(
        header=_header(_CallFrame, "attributes"),
        api=ctypes.pointer(api),
        stage=_EXECUTE,
        operands=nothing,
        results=nothing,
        attributes=attributes,
    )
    Handler(jaxlibs_handler)(ctypes.byref(frame))
    if len(asked) != 1:
        raise RuntimeError(f"jaxlib's handler of callbacks asks for {len(asked)} things, not one.")
    return asked[0]


def calling_functions(table_type: int) -> Any:
    """A handler that calls a function of the table that runs have under the number `table_type`."""

    def handle(frame_pointer: Any) -> int | None:
        frame = frame_pointer.contents
        try:
            _call(frame, _functions_of(frame, table_type))
        except BaseException:
            args = _ErrorCreateArgs(_header(_ErrorCreateArgs, "code"), _failure(), _INTERNAL)
            return frame.api.contents.error_create(ctypes.byref(args))
        return None

    return Handler(handle)


def _failure() -> bytes:
    """What the exception that is being handled says. It raises nothing, as its caller is no function of Python's."""
    try:
        return f"the callback failed: {traceback.format_exc()}".encode(errors="replace")
    except Exception:
        return b"the callback failed, and nothing can be said of its exception"


def _functions_of(frame: _CallFrame, table_type: int) -> _Functions:
    number = ctypes.c_int64(table_type)
    args = _ContextGetArgs(
        _header(_ContextGetArgs, "data"), frame.context, ctypes.pointer(number), None
    )
    if frame.api.contents.context_get(ctypes.byref(args)) or not args.data:
        raise RuntimeError("the run has been given no functions of Python's")
    return _Functions.from_address(args.data)


def _call(frame: _CallFrame, functions: _Functions) -> None:
    operands = [
        None if array is None else np.array(array)  # the function may keep it
        for array in map(_array, _buffers(frame.operands))
    ]
    results = functions.functions[_index(frame.attributes, functions.count)](*operands)
    for buffer, result in zip(_buffers(frame.results), results, strict=True):
        array = _array(buffer)
        if array is not None:
            np.copyto(array, result, casting="no")


def _index(attributes: _Attributes, count: int) -> int:
    """Which function a call means. A program may come from anybody."""
    if attributes.size != 1 or attributes.kinds[0] != _SCALAR:
        raise ValueError("a call of a function of Python's has its index alone")
    scalar = attributes.values[0].contents
    if scalar.type != _UINT64 or scalar.value[0] >= count:
        raise ValueError(f"a call means one of {count} functions of Python's, and none of them")
    return int(scalar.value[0])


def _buffers(values: _Values) -> list[_Buffer]:
    return [values.values[i].contents for i in range(values.size)]


def _array(buffer: _Buffer) -> np.ndarray | None:
    """The buffer's memory. None for a token."""
    if buffer.type == _TOKEN:
        return None
    import jax.numpy as jnp

    dtype = np.dtype(getattr(jnp, _TYPES[buffer.type]))
    shape = tuple(buffer.dimensions[: buffer.rank])
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(buffer.data) if size else bytearray()
    return np.frombuffer(memory, dtype).reshape(shape)
