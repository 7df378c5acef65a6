"""Synthetic data, environment variables, and walks through nested structures, under the names of PyTorch/XLA."""

import contextlib
import copy
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class Cleaner:
    """Calls a function when it goes itself."""

    def __init__(self, func: Callable[[], Any]) -> None:
        self.func = func

    def __del__(self) -> None:
        self.func()


class LazyProperty:
    """A value that a function makes when it is asked for first."""

    def __init__(self, gen_fn: Callable[[], Any]) -> None:
        self._gen_fn: Callable[[], Any] | None = gen_fn
        self._value: Any = None

    @property
    def value(self) -> Any:
        """What the function has made."""
        if self._gen_fn is not None:
            self._value = self._gen_fn()
            self._gen_fn = None
        return self._value


class TmpFolder:
    """A folder, `name`, that goes with the object."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp()
        self.cleaner = Cleaner(lambda name=self.name: shutil.rmtree(name))


class SampleGenerator:
    """Yields the same data a number of times, in place of a data loader.

    Args:
      data: what each step yields.
      sample_count: how many times.
    """

    def __init__(self, data: Any, sample_count: int) -> None:
        self._data = data
        self._sample_count = sample_count
        self._count = 0

    def __iter__(self) -> "SampleGenerator":
        return SampleGenerator(self._data, self._sample_count)

    def __len__(self) -> int:
        return self._sample_count

    def __next__(self) -> Any:
        return self.next()

    def next(self) -> Any:
        """The data, or StopIteration."""
        if self._count >= self._sample_count:
            raise StopIteration
        self._count += 1
        return self._data


class FnDataGenerator:
    """Yields a number of pairs (tensor of `batch_size` by `dims`, `func` of it), where `gen_tensor` makes the tensors."""

    def __init__(
        self,
        func: Callable[[Any], Any],
        batch_size: int,
        gen_tensor: Callable[..., Any],
        dims: list[int] | None = None,
        count: int = 1,
    ) -> None:
        self._func = func
        self._batch_size = batch_size
        self._gen_tensor = gen_tensor
        self._dims = list(dims or [])
        self._count = count
        self._emitted = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> "FnDataGenerator":
        return FnDataGenerator(
            self._func, self._batch_size, self._gen_tensor, dims=self._dims, count=self._count
        )

    def __next__(self) -> Any:
        return self.next()

    def next(self) -> Any:
        """A pair, or StopIteration."""
        if self._emitted >= self._count:
            raise StopIteration
        self._emitted += 1
        data = self._gen_tensor(self._batch_size, *self._dims)
        return data, self._func(data)


class DataWrapper:
    """Wraps an object whose attributes a structure walk is to move: `get_tensors` and `from_tensors` say which."""

    def get_tensors(self) -> Any:
        """The tensors."""
        raise NotImplementedError(f"{type(self).__name__} must override get_tensors().")

    def from_tensors(self, tensors: Any) -> "DataWrapper":
        """A copy with other tensors."""
        raise NotImplementedError(f"{type(self).__name__} must override from_tensors().")


def as_list(t: Any) -> Any:
    """A list or tuple itself; a list of anything else."""
    return t if isinstance(t, tuple | list) else [t]


def list_copy_append(ilist: Iterable[Any], item: Any) -> list[Any]:
    """A new list with one more item."""
    return [*ilist, item]


def flatten_nested_tuple(inputs: Any) -> tuple[Any, ...]:
    """The items of nested lists and tuples, in order."""
    if not isinstance(inputs, list | tuple):
        return (inputs,)
    return tuple(leaf for item in inputs for leaf in flatten_nested_tuple(item))


def shape(inputs: Any) -> list[int]:
    """The sizes of nested lists and tuples, which are equal within a level (AssertionError); empty for anything else."""
    if not isinstance(inputs, list | tuple):
        return []
    inner = [shape(item) for item in inputs]
    assert all(sizes == inner[0] for sizes in inner), "the parts differ in shape"
    return [len(inputs), *(inner[0] if inner else [])]


def null_print(*args: Any, **kwargs: Any) -> None:
    """Prints nothing."""


def eprint(*args: Any, **kwargs: Any) -> None:
    """Prints to the standard error."""
    print(*args, file=sys.stderr, **kwargs)


def get_print_fn(debug: int | None = None) -> Callable[..., None]:
    """`eprint` if `debug`, by default the environment's DEBUG, is not 0; else `null_print`."""
    return eprint if (getenv_as("DEBUG", int, 0) if debug is None else debug) else null_print


def timed(fn: Callable[[], T], msg: str = "", printfn: Callable[[str], None] | None = eprint) -> T:
    """What the function gives, after its time in milliseconds has been printed."""
    start = time.time()
    result = fn()
    (printfn or get_print_fn())(f"{msg}{1000 * (time.time() - start):.3f}ms")
    return result


def getenv_as(name: str, type: Callable[[str], T], defval: T | None = None) -> T | None:
    """An environment variable as a value of a type; for `bool`, 0 and "false" are false."""
    value = os.environ.get(name, "")
    if not value:
        return defval
    if type is bool:
        return value.lower() in ("1", "true", "yes", "on") or (value.isdigit() and int(value) != 0)
    return type(value)


def check_env_flag(name: str, default: str = "") -> bool:
    """Whether an environment variable says yes."""
    return os.environ.get(name, default).upper() in ("ON", "1", "YES", "TRUE", "Y")


def for_each_instance(
    value: Any, select_fn: Callable[[Any], bool], fn: Callable[[Any], None]
) -> None:
    """Calls `fn` for each part of a nested structure that `select_fn` picks."""

    def visit(part: Any) -> Any:
        fn(part)
        return part

    _walk(value, select_fn, visit, {}, rebuild=False)


def for_each_instance_rewrite(
    value: Any, select_fn: Callable[[Any], bool], fn: Callable[[Any], Any]
) -> Any:
    """The structure with each part that `select_fn` picks replaced by `fn` of it.

    Lists, tuples, named tuples, sets, dictionaries of any type with their keys, what a `DataWrapper` wraps, and
    attributes of plain objects are walked. What stands at several places is visited once. Parts without a
    replacement are not copied deeply.
    """
    return _walk(value, select_fn, fn, {}, rebuild=True)


_ATOMS = (str, bytes, bytearray, int, float, complex, bool, type(None), type)


def _walk(
    value: Any,
    select_fn: Callable[[Any], bool],
    fn: Callable[[Any], Any],
    seen: dict[int, tuple[Any, Any]],
    rebuild: bool,
) -> Any:
    if id(value) in seen:
        return seen[id(value)][1]
    # The value is kept with its result, so that its id stays its own.
    if select_fn(value):
        result = fn(value)
        seen[id(value)] = (value, result)
        return result
    if isinstance(value, _ATOMS):
        return value

    def visit(part: Any) -> Any:
        return _walk(part, select_fn, fn, seen, rebuild)

    seen[id(value)] = (value, value)
    result = _walk_parts(value, visit, rebuild, seen)
    seen[id(value)] = (value, result)
    return result


def _walk_parts(value: Any, visit: Callable[[Any], Any], rebuild: bool, seen: dict) -> Any:
    if isinstance(value, dict):
        items = [(visit(key), visit(part), key, part) for key, part in value.items()]
        same = all(new is key and new_part is part for new, new_part, key, part in items)
        if not rebuild or same:
            return value
        result = copy.copy(value)
        seen[id(value)] = (value, result)
        if any(new is not key for new, _, key, _ in items):
            result.clear()
        for new, new_part, _, _ in items:
            result[new] = new_part
        return result
    if isinstance(value, DataWrapper):
        tensors = [visit(tensor) for tensor in value.get_tensors()]
        return value.from_tensors(tensors) if rebuild else value
    if isinstance(value, (list, tuple, set, frozenset)):
        parts = [visit(part) for part in value]
        if not rebuild or all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        if hasattr(value, "_fields"):
            return type(value)(*parts)
        return type(value)(parts)
    if hasattr(value, "__dict__") and not callable(value):
        attributes = {name: visit(part) for name, part in vars(value).items()}
        if not rebuild or all(attributes[name] is part for name, part in vars(value).items()):
            return value
        result = copy.copy(value)
        vars(result).update(attributes)
        return result
    return value


class TimedScope:
    """A context that says how long its body took."""

    def __init__(self, msg: str = "", printfn: Callable[[str], None] | None = print) -> None:
        self._msg = msg
        self._printfn = printfn
        self._error: Any = None

    @property
    def error(self) -> Any:
        """The type of the exception that ended the body."""
        return self._error

    def set_error(self, error: Any) -> None:
        """Says what went wrong, as an exception of the body would."""
        self._error = error

    def elapsed(self) -> float:
        """Seconds since the body began."""
        return time.time() - self._start

    def __enter__(self) -> "TimedScope":
        self._start = time.time()
        return self

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self._error = type
        if self._printfn is not None:
            self._printfn(f"{self._msg}{self.elapsed():.3f}s")


def parallel_work(num_workers: int, fn: Callable[..., T], *args: Iterable[Any]) -> Iterator[T]:
    """`map(fn, *args)` by so many threads."""
    with ThreadPoolExecutor(max_workers=num_workers) as executor:
        return executor.map(fn, *args)


def get_free_tcp_ports(n: int = 1) -> list[int]:
    """Ports that nobody listens on at the moment."""
    ports = []
    for _ in range(n):
        with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as sock:
            sock.bind(("", 0))
            ports.append(sock.getsockname()[1])
    return ports
