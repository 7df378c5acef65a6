"""Programs of the tests in processes that have loaded torch, which takes five sixths of a small program's processor time.

One process (forking_process.py) loads it once and forks for each program. What a program does besides is as in a process
of its own: it is `__main__`, it loads torch_xla by itself, it ends as an interpreter ends.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import IO, TextIO

import processor_times

HERE = os.path.dirname(__file__)
# These are read when torch_xla is loaded, or later. Others may be read when torch is. JAX and torch's own compiler set some
# in the tests' process, which would leave the programs that come after them without the server.
READ_LATE = tuple(
    "TORCH_XLA_ PJRT_ PT_XLA_ XLA_ XRT_ JAX_ TPU_ CPU_NUM_DEVICES RANK GROUP_RANK LOCAL_RANK WORLD_SIZE MASTER_ PET_ TMPDIR "
    "CHECKPOINT TF_CPP_ TORCHINDUCTOR_CACHE_DIR PYTEST_CURRENT_TEST".split()
)
STREAMS = ("stdin", "stdout", "stderr")


class ServedProgram:
    """One that runs: what `subprocess.Popen` has, of `python ARGUMENTS`, with pipes of text."""

    def __init__(self, server: "ProgramServer", process: int, pipes: dict[str, TextIO]) -> None:
        self._server = server
        self.pid = process
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = map(pipes.get, STREAMS)

    def poll(self) -> int | None:
        return self._ended(os.WNOHANG)

    def wait(self, timeout: float = 600) -> int:
        """Its exit status; one that runs on is killed, and TimeoutError raised."""
        begun = time.monotonic()
        status = self._ended(0, timeout)
        if status == -signal.SIGKILL and time.monotonic() > begun + timeout:
            raise TimeoutError
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, text: str = "", timeout: float = 600) -> tuple[str | None, str | None]:
        """Gives it the text, and waits for its end and what it says until then."""
        with contextlib.closing(self), concurrent.futures.ThreadPoolExecutor() as reading:
            said = [
                reading.submit(pipe.read) if pipe else None for pipe in (self.stdout, self.stderr)
            ]
            if self.stdin:
                with contextlib.suppress(BrokenPipeError), self.stdin:
                    self.stdin.write(text)
            self.wait(timeout)
            out, errors = (future.result() if future else None for future in said)
            return out, errors

    def close(self) -> None:
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe:
                pipe.close()

    def __enter__(self) -> "ServedProgram":
        return self

    def __exit__(self, *_) -> None:
        self.close()
        self.wait()

    def _ended(self, options: int, timeout: float = 600) -> int | None:
        if self.returncode is None:
            self.returncode = self._server.ended(self.pid, options, timeout)
        return self.returncode


class ProgramServer:
    """Starts the process, and asks it for programs."""

    def __init__(self, environment: dict[str, str]) -> None:
        """`environment` is what most programs will have."""
        self.environment = environment
        self._counted = 0.0  # seconds of its programs, which its own will contain when it ends
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            code = (
                f"import sys; sys.path.append({HERE!r}); "
                f"import forking_process; exec(forking_process.next_program({theirs.fileno()}))"
            )
            command = [sys.executable, "-c", code]
            self._process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])

    def serves(self, arguments: tuple[str, ...], environment: dict[str, str]) -> bool:
        """Whether `python ARGUMENTS` is code, a module or a script that may start with torch loaded."""
        if arguments[0].startswith("-") and arguments[0] not in ("-c", "-m"):
            return False
        differing = self.environment.items() ^ environment.items()
        return all(name.startswith(READ_LATE) for name, _ in differing)

    def start(
        self,
        arguments: tuple[str, ...],
        folder: pathlib.Path,
        environment: dict[str, str],
        pipes: tuple[str, ...] = (),
        new_session: bool = False,
        **files: IO,
    ) -> ServedProgram:
        """As `subprocess.Popen` of `python ARGUMENTS`, with pipes, or files, as some of its STREAMS."""
        theirs = {name: number for number, name in enumerate(STREAMS)}
        theirs |= {name: file.fileno() for name, file in files.items()}
        ours = {}
        for name in pipes:
            reads, writes = os.pipe()
            theirs[name], kept = (reads, writes) if name == "stdin" else (writes, reads)
            ours[name] = os.fdopen(kept, "w" if name == "stdin" else "r")
        request = json.dumps(["start", arguments, str(folder), environment, new_session])
        socket.send_fds(self._channel, [request.encode()], list(theirs.values()))
        for name in pipes:
            os.close(theirs[name])
        return ServedProgram(self, self._answer(600), ours)  # it may still be loading torch

    def ended(self, process: int, options: int, timeout: float) -> int | None:
        """The exit status of one that was started; None if it runs and `options` are not to wait. Too late, it is killed."""
        self._channel.send(json.dumps(["wait", process, options]).encode())
        try:
            answer = self._answer(timeout)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):  # it has ended just now
                os.kill(process, signal.SIGKILL)
            answer = self._answer(600)
        return answer and self._count(answer)

    def run(
        self,
        arguments: tuple[str, ...],
        folder: pathlib.Path,
        environment: dict[str, str],
        timeout: float,
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` of `python ARGUMENTS`, with what it printed as text."""
        with (
            open(os.devnull) as nothing,
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as errors,
        ):
            process = self.start(
                arguments, folder, environment, stdin=nothing, stdout=out, stderr=errors
            )
            late = None
            try:
                process.wait(timeout)
            except TimeoutError as error:
                late = error
            out.seek(0)
            errors.seek(0)
            if late:
                raise subprocess.TimeoutExpired(
                    arguments, timeout, out.read(), errors.read()
                ) from None
            return subprocess.CompletedProcess(
                arguments, process.returncode, out.read(), errors.read()
            )

    def close(self) -> None:
        self._channel.close()
        self._process.wait()
        processor_times.of_others -= self._counted

    def _count(self, answer: tuple[int, float]) -> int:
        status, seconds = answer
        processor_times.of_others += seconds
        self._counted += seconds
        return status

    def _answer(self, timeout: float):
        self._channel.settimeout(timeout)
        return json.loads(self._channel.recv(4096))
