"""Asks profiler servers for profiles."""

import pathlib
import time
from typing import Any

import grpc

from torch_xla import runtime_server
from torch_xla._internal import profile_files, profiler_token
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


class _Stranger(grpc.RpcError):
    """Says like gRPC's own errors that a server did not prove to be this user's."""

    def __init__(self, details: str) -> None:
        super().__init__(details)
        self._details = details

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAUTHENTICATED

    def details(self) -> str:
        return self._details


def _prove(address: str, request: bytes) -> Any:
    """What the request takes along to a server of this user's, which proves itself first.

    Until it has, it gets no more of this process's memory than a proof takes.
    """
    side = profiler_token.ClientSide(int(address.rsplit(":", 1)[1]))
    options = [("grpc.max_receive_message_length", profiler_token.CHALLENGE_ANSWER_BYTES)]
    try:
        with grpc.insecure_channel(address, options=options) as channel:
            answer = channel.unary_unary(profiler_token.CHALLENGE)(side.nonce, timeout=10)
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.UNIMPLEMENTED:
            raise
        answer = b""
    metadata = side.metadata(answer, "Profile", request)
    if metadata is None:
        raise _Stranger(
            "it does not prove that it is this user's (with the token in "
            f"{runtime_server.own_token_file()}), and was sent nothing; trace(..., without_token=True) asks any server"
        )
    return metadata


def _start(channel: grpc.Channel, address: str, request: Any, token: bool, timeout: float) -> Any:
    """The call, or the error in its place."""
    serialized = request.SerializeToString()
    # Those of other hosts, and what they collect, are not ours.
    local = runtime_server.is_loopback(address.rsplit(":", 1)[0])
    try:
        metadata = _prove(address, serialized) if token and local else None
    except grpc.RpcError as error:
        return error
    return channel.unary_unary(
        f"/{messages.SERVICE}/Profile",
        response_deserializer=messages.ProfileResponse.FromString,
    ).future(serialized, timeout=timeout, metadata=metadata)


def _ask(addresses: list[str], requests: list[Any], duration_ms: int, token: bool) -> list[Any]:
    """All servers at once; their answers, or the errors in their place."""
    options = [("grpc.max_receive_message_length", -1)]
    channels = [grpc.insecure_channel(address, options=options) for address in addresses]
    timeout = duration_ms / 1000 + _PATIENCE_SECONDS
    try:
        calls = [
            _start(channel, address, request, token, timeout)
            for channel, address, request in zip(channels, addresses, requests, strict=True)
        ]
        return [
            call
            if isinstance(call, grpc.RpcError) and not isinstance(call, grpc.Future)
            else call.exception() or call.result()
            for call in calls
        ]
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
    token: bool = True,
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
        answers = _ask(addresses, requests, duration_ms, token)
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
