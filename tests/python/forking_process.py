"""What runs in the process of program_server.py: it loads torch, and forks for each program that it is asked for."""

import json
import multiprocessing
import os
import socket
import sys

import torch  # noqa: F401

_HERE = os.path.dirname(__file__)


def next_program(descriptor: int):
    """Answers requests until there are no more. Returns in each child, with the code of its main module."""
    channel = socket.socket(fileno=descriptor)
    while request := channel.recv(1 << 20):
        process = os.fork()
        if process == 0:
            channel.close()
            return _begin(*json.loads(request))
        channel.send(json.dumps(process).encode())
        _, status, used = os.wait4(process, 0)
        ended = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
        channel.send(json.dumps(ended).encode())
    return "pass"


def _begin(arguments: list[str], folder: str, environment: dict[str, str], printed: list[str]):
    """Makes this process what `python ARGUMENTS` starts as."""
    os.chdir(folder)
    multiprocessing.process.ORIGINAL_DIR = (
        folder  # against which a spawned process resolves the main module's path
    )
    sys.path.remove(_HERE)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate((os.devnull, *printed)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
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
