"""Runs one command on all machines of a pod, or on a list of hosts, over ssh.

    python -m torch_xla.distributed.xla_dist --tpu=NAME -- python3 train.py
    python -m torch_xla.distributed.xla_dist --hosts=a,b --env=PJRT_DEVICE=CPU -- torchrun --nproc-per-node=2 train.py

Each line that a machine prints gets the machine's name in front. When the command fails on one machine it is ended on
all, and the exit status is that of the first failure. Ctrl-C, and the end of this program, end it everywhere.

With `--hosts` the command finds in its environment what `torchrun` needs to know: PET_NNODES, PET_NODE_RANK,
PET_MASTER_ADDR and PET_MASTER_PORT. With `--tpu` the machines know each other already. With both it finds the secret of
the job in TORCH_XLA_JOB_SECRET.

Variables may be secrets, and every user of a machine can read its processes' command lines. So they reach the hosts
through ssh's standard input, and the machines of a pod in a file that only its owner can read, and then go from
environment to environment.
"""

import argparse
import contextlib
import os
import queue
import re
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from typing import IO

DEFAULT_MASTER_PORT = 29500
# What a command gets between SIGTERM and SIGKILL; torchrun gives its own processes 30 s.
STOP_SECONDS = 40
# The same where this program has ended without a word.
LOST_SECONDS = 5
# As in `_internal.job_secret`; importing it would take as long as importing torch does.
SECRET_VARIABLE = "TORCH_XLA_JOB_SECRET"
SECRET_FILE_VARIABLE = "TORCH_XLA_JOB_SECRET_FILE"

# Ends the process group of $child: asks for it once, waits, and forces it. The group may be about to be made.
_STOP = f"""
grace={STOP_SECONDS}
stop() {{
  asked=0
  waits=0
  while kill -0 -$child || kill -0 $child; do
    [ $asked = 1 ] || ! kill -TERM -$child || asked=1
    [ $waits -lt $((grace * 5)) ] || kill -KILL -$child
    [ $waits -lt $((grace * 5 + 25)) ] || break
    sleep 0.2
    waits=$((waits + 1))
  done
}} 2>/dev/null
"""

# What runs on a machine: the command, in a process group of its own. Its text, which sets its variables, is a variable
# too. Status 255 means to ssh and gcloud that the connection failed, so it is replaced.
_RUN = """
exec 3<&0 </dev/null
export XLA_DIST_COMMAND
setsid sh -c 'eval "$XLA_DIST_COMMAND"' 3<&- &
child=$!
unset XLA_DIST_COMMAND
%(watch)s
exec 3<&-
# The shell would say that the command was ended.
wait $child 2>/dev/null
status=$?
# What the command has left running ends with it.
stop
[ $status -ne 255 ] || status=254
%(finish)s
exit $status
"""

# A shell that nobody logs in to does not know where conda is.
_FIND_CONDA = """
for conda in "$CONDA_EXE" "$(command -v conda)" \
    "$HOME/miniconda3/bin/conda" "$HOME/anaconda3/bin/conda" /opt/conda/bin/conda /anaconda3/bin/conda; do
  [ ! -x "$conda" ] || break
done
[ -x "$conda" ] || { echo "conda is not found: set CONDA_EXE to its path" >&2; exit 127; }
"""

# Over ssh the standard input is the connection: at its end the command ends, at once if nobody has asked for it.
_WATCH_CONNECTION = f"""
{{
  asked=0
  while read -r word; do [ "$word" != stop ] || asked=1; done
  [ $asked = 1 ] || grace={LOST_SECONDS}
  stop
}} <&3 3<&- >/dev/null 2>&1 &
watcher=$!
"""

# Runs the program that comes first on the standard input, up to a line that is the mark.
_READ_PROGRAM = """
program=
while IFS= read -r line && [ "$line" != %(mark)s ]; do
  program="$program$line
"
done
[ "$line" = %(mark)s ] || exit 255
eval "$program"
"""


def get_args_parser() -> argparse.ArgumentParser:
    """The command line's parser. `positional` is the command."""
    parser = argparse.ArgumentParser(
        prog="python -m torch_xla.distributed.xla_dist",
        description="Runs one command on all machines of a pod, or on a list of hosts, over ssh.",
    )
    where = parser.add_argument_group("where")
    where.add_argument(
        "--tpu", dest="tpu_name", metavar="NAME", help="a TPU pod; needs the gcloud command"
    )
    where.add_argument("--zone", dest="tpu_zone", metavar="ZONE", help="the TPU's zone")
    where.add_argument("--project", dest="tpu_project", metavar="ID", help="the TPU's project")
    where.add_argument(
        "--hosts", metavar="A,B", help="hosts, as ssh takes them; the first one is the master"
    )
    where.add_argument(
        "--ssh", default="ssh", metavar="COMMAND", help="the ssh command with its options"
    )
    where.add_argument(
        "--master-addr", metavar="ADDRESS", help="of the first host, as the hosts reach it"
    )
    where.add_argument("--master-port", type=int, default=DEFAULT_MASTER_PORT, metavar="PORT")
    what = parser.add_argument_group("what")
    what.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable for the command; NAME alone passes on its value here",
    )
    what.add_argument("--workdir", metavar="FOLDER", help="where the command runs")
    what.add_argument(
        "--conda-env", metavar="NAME", help="the conda environment of the machines to run it in"
    )
    what.add_argument(
        "--restart-tpuvm-pod-server",
        action="store_true",
        help="of no effect: there is no server to restart",
    )
    what.add_argument("positional", nargs=argparse.REMAINDER, metavar="command", help="the command")
    return parser


def parse_args(args: list[str] | None = None) -> argparse.Namespace:
    """The command line; an error ends the program with status 2."""
    parser = get_args_parser()
    parsed = parser.parse_args(args)
    try:
        _check(parsed)
    except ValueError as error:
        parser.error(str(error))
    return parsed


def resolve_and_execute(args: argparse.Namespace) -> None:
    """Runs the command; returns when it has succeeded on all machines.

    Raises:
      ValueError: the arguments contradict each other.
      SystemExit: it has failed, with the first failure's status.
    """
    status = run(args)
    if status != 0:
        raise SystemExit(status)


def run(args: argparse.Namespace) -> int:
    """Runs the command; the exit status of the first machine where it has failed, or 0."""
    _check(args)
    machines: _Hosts | _Pod = _Pod(args) if args.tpu_name else _Hosts(args)
    with _signals_as_exceptions():
        try:
            return machines.run()
        except _StopError as stopped:
            return 128 + stopped.signal
        finally:
            machines.stop()


def _check(args: argparse.Namespace) -> None:
    if bool(args.tpu_name) == bool(args.hosts):
        raise ValueError("Name either a pod (--tpu=NAME) or hosts (--hosts=A,B).")
    if not _command_words(args):
        raise ValueError("The command is missing: xla_dist --hosts=A,B -- COMMAND")
    _environment(args)


def _command_words(args: argparse.Namespace) -> list[str]:
    words = [args.positional] if isinstance(args.positional, str) else list(args.positional)
    return words[1:] if words[:1] == ["--"] else words


def _environment(args: argparse.Namespace) -> dict[str, str]:
    """The variables of --env."""
    environment = {}
    for item in args.env or []:
        name, equals, value = item.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            # The value may be a secret.
            raise ValueError(f"--env={name}: NAME=VALUE is expected.")
        if not equals:
            if name not in os.environ:
                raise ValueError(f"--env={item}: there is no such variable here.")
            value = os.environ[name]
        environment[name] = value
    return environment


def _with_secret(environment: dict[str, str]) -> dict[str, str]:
    """The variables, with this program's secret of the job, or a new one, unless they hold one."""
    if SECRET_VARIABLE in environment or SECRET_FILE_VARIABLE in environment:
        return environment
    secret = os.environ.get(SECRET_VARIABLE) or secrets.token_hex(32)
    return {**environment, SECRET_VARIABLE: secret}


def _exports(environment: dict[str, str]) -> str:
    """The text for a shell that sets the variables."""
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment.items())


def _remote_program(args: argparse.Namespace, set_variables: str, watch: str, finish: str) -> str:
    """The text for a machine's shell; that of `set_variables` sets the command's variables."""
    steps = ["unset XLA_DIST_COMMAND"]
    steps += [f"cd {shlex.quote(args.workdir)} || exit 1"] if args.workdir else []
    steps.append(set_variables)
    conda = getattr(args, "conda_env", None)
    steps.append(
        (
            _FIND_CONDA + f'"$conda" run --no-capture-output -n {shlex.quote(conda)} '
            if conda
            else ""
        )
        + shlex.join(_command_words(args))
    )
    command = shlex.quote("\n".join(steps))
    return f"XLA_DIST_COMMAND={command}" + _STOP + _RUN % {"watch": watch, "finish": finish}


def _in_sh(program: str) -> str:
    # The user's own shell may be any.
    return f"exec sh -c {shlex.quote(program)}"


class _StopError(Exception):
    """A signal asks for the end."""

    def __init__(self, signal: int) -> None:
        self.signal = signal


@contextlib.contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise _StopError, once; later ones are ignored, as the end is under way."""

    def stop(number: int, _frame: object) -> None:
        for each in handled:
            signal.signal(each, signal.SIG_IGN)
        raise _StopError(number)

    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Plain locks, as this file runs by itself, without the package and torch, and forks nothing that would come back to it.
_print_lock = threading.Lock()


def _copy(source: IO[bytes], target: IO[str], prefix: str) -> None:
    """Copies lines with a prefix, each as soon as it is there."""
    for line in source:
        text = line.decode(errors="replace").rstrip("\n")
        with _print_lock:
            print(f"{prefix}{text}", file=target, flush=True)


class _Host:
    """The command on one host.

    Args:
      name: the host's.
      command: what reaches it.
      program: what its shell reads first.
    """

    def __init__(self, name: str, command: list[str], program: str) -> None:
        self.name = name
        # Who writes to the standard input; a long program waits for the connection.
        self._writing = threading.Lock()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C must not cut the connection before the command has been ended.
            start_new_session=True,
        )
        self._copiers = [
            threading.Thread(target=_copy, args=(source, target, f"[{name}] "), daemon=True)
            for source, target in (
                (self._process.stdout, sys.stdout),
                (self._process.stderr, sys.stderr),
            )
        ]
        for thread in self._copiers:
            thread.start()
        threading.Thread(target=self._send, args=(program,), daemon=True).start()

    def _send(self, text: str) -> None:
        assert self._process.stdin is not None
        # The connection may have failed, or have been closed.
        with self._writing, contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(text.encode(errors="surrogateescape"))
            self._process.stdin.flush()

    def wait(self) -> int:
        """The command's exit status; 255 if the connection failed."""
        status = self._process.wait()
        for thread in self._copiers:
            thread.join(timeout=5)
        return status if status >= 0 else 128 - status

    def stop(self) -> None:
        """Tells the host to end the command."""
        self._send("stop\n")
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def end(self, deadline: float) -> None:
        """Waits until the command has ended, at most until then."""
        try:
            self._process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            print(f"[{self.name}] does not answer; it is given up.", file=sys.stderr, flush=True)
            self._process.kill()
            self._process.wait()


class _Hosts:
    """The command on hosts, over one ssh connection each."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._names = [name.strip() for name in args.hosts.split(",") if name.strip()]
        self._hosts: list[_Host] = []
        self._mark = _new_mark()
        self._environment = _with_secret(_environment(args))

    def run(self) -> int:
        """Starts it everywhere, and waits until it has succeeded everywhere or failed somewhere."""
        ended: queue.Queue[tuple[_Host, int]] = queue.Queue()
        for rank, name in enumerate(self._names):
            host = _Host(name, self._ssh(name), f"{self._program(rank)}\n{self._mark}\n")
            self._hosts.append(host)
            threading.Thread(
                target=lambda host=host: ended.put((host, host.wait())), daemon=True
            ).start()
        for _ in self._hosts:
            host, status = ended.get()
            if status != 0:
                reason = f"exit status {status}" if status != 255 else "ssh failed"
                print(f"[{host.name}] {reason}", file=sys.stderr, flush=True)
                return status
        return 0

    def stop(self) -> None:
        """Ends the command where it still runs."""
        for host in self._hosts:
            host.stop()
        deadline = time.monotonic() + STOP_SECONDS + 5
        for host in self._hosts:
            host.end(deadline)

    def _program(self, rank: int) -> str:
        master = self._args.master_addr or self._names[0].rpartition("@")[2]
        environment = {
            "PET_NNODES": str(len(self._names)),
            "PET_NODE_RANK": str(rank),
            "PET_MASTER_ADDR": master,
            "PET_MASTER_PORT": str(self._args.master_port),
            **self._environment,
        }
        return _remote_program(
            self._args, _exports(environment), _WATCH_CONNECTION, "kill $watcher 2>/dev/null"
        )

    def _ssh(self, name: str) -> list[str]:
        # A password cannot be typed on many connections at once. A dead machine is noticed.
        options = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20"]
        options += ["-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"]
        reader = _in_sh(_READ_PROGRAM % {"mark": self._mark})
        return [*shlex.split(self._args.ssh), *options, name, reader]


def _new_mark() -> str:
    return f"xla_dist-{uuid.uuid4().hex[:12]}"


class _Pod:
    """The command on a TPU pod, through gcloud, which knows the machines and their keys.

    gcloud shares one standard input among its connections and waits for all of them. So a machine puts its name before
    its own lines, says when its command has ended, and keeps the number of its process group in a file, by which a
    second gcloud ends it. A first gcloud copies the file with the command's variables.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._mark = _new_mark()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._failed: queue.Queue[int | None] = queue.Queue()

    def run(self) -> int:
        """Runs gcloud until it ends, or until a machine says that its command has failed."""
        self._start_guard()
        copied = self._copy_variables()
        if copied.returncode != 0:
            reason = copied.stderr.decode(errors="replace")
            print(f"gcloud could not copy the command's variables: {reason}", file=sys.stderr)
            return copied.returncode
        self._process = subprocess.Popen(
            self._gcloud_ssh(self._program()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        threading.Thread(target=self._read_output, daemon=True).start()
        status = self._failed.get()
        return self._process.wait() if status is None else status

    def stop(self) -> None:
        """Ends the command on all machines, if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._silently(self._gcloud_ssh(self._stop_program()))
            try:
                self._process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        elif self._process is None:
            # Some machines may have got their variables, and nothing will come to read them.
            self._silently(self._gcloud_ssh(_in_sh(f"rm -f {self._variables()}")))
        if self._guard is not None:
            self._guard.communicate(b"\n")

    def _start_guard(self) -> None:
        """Starts what ends the command when this program has ended without doing so: nothing else would tell gcloud."""
        stop = self._gcloud_ssh(self._stop_program(f"grace={LOST_SECONDS}"))
        self._guard = subprocess.Popen(
            ["sh", "-c", 'read -r _ || exec "$@"', "sh", *stop],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _stop_program(self, grace: str = "") -> str:
        # A machine that begins only now finds the second file.
        steps = [
            f">{self._file('stop')}",
            f"rm -f {self._variables()}",
            f"child=$(cat {self._file('group')}) || exit 0",
            *(_STOP, grace, "stop", "exit 0"),
        ]
        return _in_sh("\n".join(steps))

    def _copy_variables(self) -> subprocess.CompletedProcess[bytes]:
        """Gives all machines the command's variables."""
        with tempfile.NamedTemporaryFile("w", errors="surrogateescape") as file:
            file.write(_exports(_with_secret(_environment(self._args))) + "\n")
            file.flush()
            target = f"{self._args.tpu_name}:.{self._mark}.variables"
            return self._silently(self._gcloud("scp", file.name, target))

    def _silently(self, command: list[str]) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)

    def _gcloud_ssh(self, command: str) -> list[str]:
        return [*self._gcloud("ssh", self._args.tpu_name), f"--command={command}"]

    def _gcloud(self, *what: str) -> list[str]:
        words = ["gcloud", "compute", "tpus", "tpu-vm", *what, "--worker=all"]
        if self._args.tpu_zone:
            words.append(f"--zone={self._args.tpu_zone}")
        if self._args.tpu_project:
            words.append(f"--project={self._args.tpu_project}")
        return words

    def _file(self, what: str) -> str:
        return f'"${{XDG_RUNTIME_DIR:-$HOME}}/.{self._mark}.{what}"'

    def _variables(self) -> str:
        """The file that `_copy_variables` makes; it has the mode of the one here, 0600."""
        return f'"$HOME/.{self._mark}.variables"'

    def _program(self) -> str:
        group, stop, variables = self._file("group"), self._file("stop"), self._variables()
        program = _in_sh(
            _remote_program(
                self._args,
                f". {variables} || exit 1\nrm -f {variables}",
                watch=f"echo $child >{group}; [ ! -e {stop} ] || stop",
                finish=f"rm -f {group} {stop} {variables}; echo {self._mark} $status",
            )
        )
        # A pipe's status is its last command's; that of the first goes through another descriptor.
        name = 'sed -u "s/^/[$(hostname)] /"'
        return _in_sh(
            f"{{ {{ {{ ( {program} ) 2>&1; echo $? >&3; }} | {name} >&4; }} 3>&1 | "
            "{ read -r status; exit $status; }; } 4>&1"
        )

    def _read_output(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        mark = re.compile(rf"\[.*\] {self._mark} (\d+)")
        for line in self._process.stdout:
            text = line.decode(errors="replace").rstrip("\n")
            found = mark.fullmatch(text)
            if found is None:
                print(text, flush=True)
            elif found[1] != "0":
                print(f"{text.partition(']')[0]}] exit status {found[1]}", file=sys.stderr)
                self._failed.put(int(found[1]))
        self._failed.put(None)


def main(args: list[str] | None = None) -> int:
    """The program."""
    return run(parse_args(args))


if __name__ == "__main__":
    sys.exit(main())
