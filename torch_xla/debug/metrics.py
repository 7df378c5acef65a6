"""Counters and metrics of the runtime: what was compiled, run, transferred, and computed on the CPU instead."""

from torch_xla import _XLAC

_SHORT_COUNTERS = ["CachedCompile", "MarkStep", "DynamoSyncInputExecuteTime"]
_SHORT_METRICS = [
    "CompileTime",
    "ExecuteTime",
    "ExecuteReplicatedTime",
    "TransferToDeviceTime",
    "TransferFromDeviceTime",
]


def clear_counters() -> None:
    """Sets the counters back."""
    _XLAC._clear_xla_counters()


def clear_metrics() -> None:
    """Forgets the samples of the metrics."""
    _XLAC._clear_xla_metrics()


def clear_all() -> None:
    """Sets counters and metrics back."""
    clear_metrics()
    clear_counters()


def counter_names() -> list[str]:
    """The counters that have counted something."""
    return _XLAC._xla_counter_names()


def counter_value(name: str) -> int | None:
    """What a counter has counted; None if it has not counted anything."""
    return _XLAC._xla_counter_value(name)


def metric_names() -> list[str]:
    """The metrics that have samples."""
    return _XLAC._xla_metric_names()


def metric_data(name: str) -> tuple[int, float, list[tuple[float, float]]] | None:
    """The number of samples of a metric, their sum, and the last of them as (time, value); None without samples.

    Times are in seconds since 1970. Values of metrics whose names end in "Time" are in nanoseconds.
    """
    return _XLAC._xla_metric_data(name)


def metrics_report() -> str:
    """All metrics and counters as text."""
    return _XLAC._xla_metrics_report()


def short_metrics_report(
    counter_names: list[str] | None = None, metric_names: list[str] | None = None
) -> str:
    """Some of them as text, and each operator that ran on the CPU; by default those that say why a program is slow."""
    fallbacks = [name for name in _XLAC._xla_counter_names() if name.startswith("aten::")]
    counters = dict.fromkeys([*(counter_names or _SHORT_COUNTERS), *fallbacks])
    return _XLAC._short_xla_metrics_report(list(counters), metric_names or _SHORT_METRICS)


def executed_fallback_ops() -> list[str]:
    """The operators that ran on the CPU for want of a lowering, as `aten::name`."""
    return _XLAC._get_executed_fallback_ops()
