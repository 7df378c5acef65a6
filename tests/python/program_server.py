"""Programs of the tests in processes that have loaded torch, which takes five sixths of a small program's processor time.

One process (forking_process.py) loads it once and forks for each program. What a program does besides is as in a process
of its own: it is `__main__`, it loads torch_xla by itself, it ends as an interpreter ends.
"""

import contextlib
import functools
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
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
# Of a request's environment: a message may not be much longer.
MOST_CHARACTERS = 1 << 16


class ServedProgram:
    """One that runs: what `subprocess.Popen` has, of `python ARGUMENTS`, with pipes of text."""

    def __init__(
        self,
        server: "ProgramServer",
        process: int,
        arguments: tuple[str, ...],
        pipes: dict[str, TextIO],
    ) -> None:
        self._server = server
        self.args = arguments
        self.pid = process
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = map(pipes.get, STREAMS)

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._server.ended(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status; subprocess.TimeoutExpired if it runs on."""
        if self.poll() is None:  # so nobody else has asked, and its number is still its own
            descriptor = os.pidfd_open(self.pid)
            try:
                if not select.select([descriptor], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout)
            finally:
                os.close(descriptor)
        return self.poll()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, text: str = "", timeout: float = 600) -> tuple[str | None, str | None]:
        """Gives it the text, and waits for its end and what it says until then.

        subprocess.TimeoutExpired if it runs on, or what it started holds its pipes.
        """
        end = time.monotonic() + timeout
        said = {}

        def write() -> None:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                self.stdin.write(text)

        def read(name: str) -> None:
            said[name] = getattr(self, name).read()

        works = [functools.partial(read, name) for name in STREAMS[1:] if getattr(self, name)]
        if self.stdin:
            works.append(write)
        threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(end - time.monotonic(), 0))
        if any(thread.is_alive() for thread in threads):
            raise subprocess.TimeoutExpired(self.args, timeout)
        self.wait(max(end - time.monotonic(), 0))
        self.close()
        return said.get("stdout"), said.get("stderr")

    def close(self) -> None:
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe:
                pipe.close()

    def __enter__(self) -> "ServedProgram":
        return self

    def __exit__(self, *_) -> None:
        self.close()
        self.wait()


class ProgramServer:
    """Starts the process, and asks it for programs."""

    def __init__(self, environment: dict[str, str]) -> None:
        """`environment` is what most programs will have."""
        self.environment = environment
        self._counted = 0.0  # seconds of its programs, which its own will contain when it ends
        self._asking = threading.Lock()
        self._asked = 0
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(600)
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
        if sum(map(len, [*environment.keys(), *environment.values()])) > MOST_CHARACTERS:
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
        mask = os.umask(0)
        os.umask(mask)
        request = ["start", arguments, str(folder), environment, new_session, mask]
        process = self._ask(request, theirs.values())
        for name in pipes:
            os.close(theirs[name])
        return ServedProgram(self, process, arguments, ours)

    def ended(self, process: int) -> int | None:
        """The exit status of one that was started; None if it runs."""
        answer = self._ask(["end", process])
        if answer is None:
            return None
        status, seconds = answer
        processor_times.of_others += seconds
        self._counted += seconds
        return status

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
            except subprocess.TimeoutExpired as error:
                late = error
                process.kill()
                process.wait()
            out.seek(0)
            errors.seek(0)
            if late:
                late.output, late.stderr = out.read(), errors.read()
                raise late
            return subprocess.CompletedProcess(
                arguments, process.returncode, out.read(), errors.read()
            )

    def close(self) -> None:
        self._channel.close()
        self._process.wait()
        processor_times.of_others -= self._counted

    def _ask(self, request: list, streams: Iterable[int] = ()):
        """The answer, which never takes long but while torch is still being loaded."""
        with self._asking:
            self._asked += 1
            message = json.dumps([self._asked, *request]).encode()
            socket.send_fds(self._channel, [message], list(streams))
            while True:
                number, answer = json.loads(self._channel.recv(4096))
                if (
                    number == self._asked
                ):  # nobody waited for others, as where a test was interrupted
                    return answer
