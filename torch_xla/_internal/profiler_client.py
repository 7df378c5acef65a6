"""Asks profiler servers for profiles."""

import pathlib
import time
from typing import Any

import grpc

from torch_xla._internal import profile_files
from torch_xla._internal import profiler_messages as messages

# Beyond the duration itself: a large profile takes a while to be made and sent.
_PATIENCE_SECONDS = 60
_RETRIED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ALREADY_EXISTS)


def _request(
    run: str, folder: pathlib.Path, address: str, duration_ms: int, levels: dict[str, int]
) -> Any:
    return messages.ProfileRequest(
        duration_ms=duration_ms,
        max_events=1_000_000,
        repository_root=str(folder),
        session_id=run,
        host_name=address.rsplit(":", 1)[0],
        # Servers older than this field write the file themselves.
        emit_xspace=True,
        opts=messages.ProfileOptions(
            version=1,
            enable_hlo_proto=True,
            duration_ms=duration_ms,
            start_timestamp_ns=time.time_ns(),
            **levels,
        ),
    )


def _ask(addresses: list[str], requests: list[Any], duration_ms: int) -> list[Any]:
    """All servers at once; their answers, or the errors in their place."""
    options = [("grpc.max_receive_message_length", -1)]
    channels = [grpc.insecure_channel(address, options=options) for address in addresses]
    try:
        calls = [
            channel.unary_unary(
                f"/{messages.SERVICE}/Profile",
                request_serializer=messages.ProfileRequest.SerializeToString,
                response_deserializer=messages.ProfileResponse.FromString,
            ).future(request, timeout=duration_ms / 1000 + _PATIENCE_SECONDS)
            for channel, request in zip(channels, requests, strict=True)
        ]
        return [call.exception() or call.result() for call in calls]
    finally:
        for channel in channels:
            channel.close()


def capture(
    addresses: list[str],
    logdir: str,
    duration_ms: int,
    attempts: int,
    timeout_s: float,
    interval_s: float,
    levels: dict[str, int],
) -> list[pathlib.Path]:
    """The files of the profiles, one for each server; see `torch_xla.debug.profiler.trace`."""
    folder = profile_files.runs_folder(logdir).absolute()
    give_up = time.monotonic() + timeout_s
    problem = ""
    for attempt in range(max(attempts, 1)):
        if attempt > 0:
            if time.monotonic() + interval_s > give_up:
                break
            time.sleep(interval_s)
        run = profile_files.new_run()
        requests = [_request(run, folder, a, duration_ms, levels) for a in addresses]
        answers = _ask(addresses, requests, duration_ms)
        for address, answer in zip(addresses, answers, strict=True):
            if isinstance(answer, grpc.RpcError):
                problem = f"{address} answers {answer.code().name}: {answer.details()}"
                if answer.code() not in _RETRIED:
                    raise RuntimeError(f"trace: {problem}")
            elif answer.empty_trace:
                problem = f"nothing happened at {address} in {duration_ms} ms"
        if any(not isinstance(a, grpc.RpcError) and not a.empty_trace for a in answers):
            return [
                _keep(answer, address, folder / run, len(addresses) > 1)
                for address, answer in zip(addresses, answers, strict=True)
                if not isinstance(answer, grpc.RpcError) and not answer.empty_trace
            ]
    raise RuntimeError(f"trace: no profile after {max(attempts, 1)} attempts; {problem}")


def _keep(answer: Any, address: str, folder: pathlib.Path, is_one_of_many: bool) -> pathlib.Path:
    host, _, port = address.rpartition(":")
    if answer.xspace:
        return profile_files.write(
            answer.xspace, folder, f"{host}_{port}" if is_one_of_many else host
        )
    return folder / f"{host}.xplane.pb"
