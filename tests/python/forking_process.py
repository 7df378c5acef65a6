"""What runs in the process of program_server.py: it loads torch and its compiler, and forks for each program that it is asked for."""

import gc
import json
import multiprocessing
import os
import signal
import socket
import sys
import tempfile

import torch
import torch._dynamo  # which the first step of an optimizer loads, in a second  # noqa: F401

_HERE = os.path.dirname(__file__)


def next_program(descriptor: int):
    """Answers requests until there are no more. Returns in each child, with the code of its main module."""
    channel = socket.socket(fileno=descriptor)
    # A child's collector, which would write to each of torch's objects, and so copy their pages, takes most of what a small
    # program takes.
    gc.collect()
    gc.freeze()
    while True:
        request, streams, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not request:
            return "pass"
        number, kind, *words = json.loads(request)
        if kind == "start":
            answer = os.fork()
            if answer == 0:
                channel.close()
                return _begin(*words, streams)
        else:
            answer = _ended(*words)
        for stream in streams:
            os.close(stream)
        channel.send(json.dumps([number, answer]).encode())


def _ended(process: int) -> tuple[int, float] | None:
    """The exit status of one that has, and its processor time."""
    ended, status, used = os.wait4(process, os.WNOHANG)
    return (os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime) if ended else None


def _begin(
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    new_session: bool,
    mask: int,
    streams: list[int],
):
    """Makes this process what `python ARGUMENTS` starts as."""
    os.umask(mask)
    if new_session:
        os.setsid()
    # Who started the tests may ignore it, as nohup does, and children do what their parents did.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.chdir(folder)
    multiprocessing.process.ORIGINAL_DIR = (
        folder  # against which a spawned process resolves the main module's path
    )
    sys.path.remove(_HERE)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # which torch has asked for, and which the environment tells
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for name in ("sys", "forking_process"):  # which the program has to import for itself
        del vars(sys.modules["__main__"])[name]
    main, *sys.argv = arguments
    if main == "-c":
        code = sys.argv[0]
        sys.argv[0] = "-c"
        return compile(code, "<string>", "exec")
    if main == "-m":
        sys.path[0] = folder
        return (
            f"import runpy; runpy.run_module({sys.argv[0]!r}, run_name='__main__', alter_sys=True)"
        )
    sys.argv.insert(0, main)
    sys.path[0] = os.path.dirname(os.path.abspath(main))
    sys.modules["__main__"].__file__ = main
    with open(main, "rb") as source:
        return compile(source.read(), main, "exec")
