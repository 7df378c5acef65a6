"""Programs of the tests in processes that have loaded torch, which takes six sevenths of a small program's processor time.

One process (forking_process.py) loads it once and forks for each program. What a program does besides is as in a process
of its own: it is `__main__`, it loads torch_xla by itself, it ends as an interpreter ends.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile

import processor_times

HERE = os.path.dirname(__file__)
# These are read when torch_xla is loaded, or later. Others may be read when torch is.
READ_LATE = ("TORCH_XLA_", "PJRT_", "PT_XLA_", "CPU_NUM_DEVICES", "PYTEST_CURRENT_TEST")


class ProgramServer:
    """Starts the process, and asks it for programs, one after the other."""

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

    def run(
        self,
        arguments: tuple[str, ...],
        folder: pathlib.Path,
        environment: dict[str, str],
        timeout: float,
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` of `python ARGUMENTS`, with what it printed as text."""
        with tempfile.TemporaryDirectory() as printed:
            out, error = pathlib.Path(printed, "out"), pathlib.Path(printed, "error")
            self._send(arguments, str(folder), environment, [str(out), str(error)])
            process = self._answer(600)  # it may still be loading torch
            try:
                status, seconds = self._answer(timeout)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):  # it has ended just now
                    os.kill(process, signal.SIGKILL)
                self._answer(600)
                raise subprocess.TimeoutExpired(
                    arguments, timeout, out.read_text(), error.read_text()
                ) from None
            processor_times.of_others += seconds
            self._counted += seconds
            return subprocess.CompletedProcess(
                arguments, status, out.read_text(), error.read_text()
            )

    def close(self) -> None:
        self._channel.close()
        self._process.wait()
        processor_times.of_others -= self._counted

    def _send(self, *request) -> None:
        self._channel.send(json.dumps(request).encode())

    def _answer(self, timeout: float):
        self._channel.settimeout(timeout)
        return json.loads(self._channel.recv(4096))
