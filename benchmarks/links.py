"""Compares what can carry the bytes of collectives between hosts, over links of several speeds, and prints a markdown table.

    ninja -C build link_collectives link_grpc
    python -m benchmarks.links                     about five minutes, as root
    python -m benchmarks.links --rounds 1 --rates 8 --sides sockets "sockets, TLS"

The hosts are two network namespaces, the link is a pair of interfaces that are held to a rate. `sockets` is the engine's
own transport, with all that a collective brings: a `collective_permute` of one message or, both ways, of two. `gRPC` is a
bidirectional stream that sends from and receives into the program's memory, with options for large messages. Both ways
at once counts one way. The processor time is that of both hosts, for each GB that one way carries. Medians of the rounds,
in which the sides take turns. Both hosts share this machine's processors: with two of them, the one thread of each host
that carries has a whole one only while nothing else runs.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator

PROGRAMS = pathlib.Path(__file__).parents[1] / "build/benchmarks/engine"
WAYS = ("one", "both", "all_reduce")
MIB = 64
ADDRESSES = ("10.201.77.1", "10.201.77.2")
PORT = 7777


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


class Link:
    """Two namespaces and the cable between them."""

    def __init__(self, namespaces: list[str]) -> None:
        self._namespaces = namespaces

    def set_rate(self, gbits: float) -> None:
        """Holds both ends to so much; 0: as fast as they are."""
        for name in self._namespaces:
            tc = ["ip", "netns", "exec", name, "tc"]
            subprocess.run([*tc, "qdisc", "del", "dev", "eth0", "root"], stderr=subprocess.DEVNULL)
            if gbits:
                _run(*tc, *"qdisc add dev eth0 root handle 1: htb default 1".split())
                shape = f"htb rate {gbits}gbit burst 4mb cburst 4mb"
                _run(*tc, *"class add dev eth0 parent 1: classid 1:1".split(), *shape.split())

    def start(self, host: int, *command: str) -> subprocess.Popen:
        """The command as it runs on the host."""
        words = ["ip", "netns", "exec", self._namespaces[host], "timeout", "120", *command]
        # Its own address is the one of its interface.
        environment = {**os.environ, "MASTER_ADDR": ADDRESSES[0], "TORCH_XLA_TLS": "1"}
        return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)


@contextlib.contextmanager
def link() -> Iterator[Link]:
    """Makes the namespaces; at the end nothing of them is left."""
    names = [f"link{os.getpid()}{end}" for end in "ab"]
    with contextlib.ExitStack() as stack:
        for name in names:
            _run("ip", "netns", "add", name)
            stack.callback(_run, "ip", "netns", "delete", name)
        peer = ["type", "veth", "peer", "name", "eth0", "netns", names[1]]
        _run("ip", "link", "add", "eth0", "netns", names[0], *peer)
        for name, address in zip(names, ADDRESSES, strict=True):
            _run("ip", "-netns", name, "address", "add", f"{address}/24", "dev", "eth0")
            _run("ip", "-netns", name, "link", "set", "eth0", "up")
            _run("ip", "-netns", name, "link", "set", "lo", "up")
        yield Link(names)


def _make_certificate(folder: str) -> None:
    files = ["-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"]
    names = ["-subj", "/CN=rank", "-addext", "subjectAltName=DNS:rank"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run([*command, *files, *names], check=True, stderr=subprocess.DEVNULL)


def _measure(between: Link, side: str, way: str, count: int) -> dict[str, float]:
    """Gbit/s, and seconds of processor per GB."""
    carrier, _, tls = side.partition(", ")
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        for host in range(2):
            if carrier == "sockets":
                command = [str(PROGRAMS / "link_collectives"), str(host), folder]
                command.append("the secret of a measurement" if tls else "")
            else:
                if tls and host == 0:
                    _make_certificate(folder)
                command = [str(PROGRAMS / "link_grpc"), str(host), f"{ADDRESSES[0]}:{PORT}"]
                command.append(folder if tls else "")
            processes.append(between.start(host, *command, way, str(MIB), str(count)))
            if carrier == "gRPC":
                time.sleep(0.3)  # it listens
        outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit(f"{side}, {way}: {[process.returncode for process in processes]}")
    figures = [json.loads(output) for output in outputs]
    gigabytes = count * MIB * 2**20 / 1e9
    return {
        "rate": 8 * gigabytes / max(figure["seconds"] for figure in figures),
        "processor": sum(figure["processor"] for figure in figures) / gigabytes,
    }


def _print_table(
    sides: list[str], results: dict[tuple[float, str, str], list[dict[str, float]]]
) -> None:
    print("\n| link | way | " + " | ".join(sides) + " |\n|---|---|" + "---|" * len(sides))
    for rate, way in dict.fromkeys((rate, way) for rate, way, _ in results):
        cells = []
        for side in sides:
            taken = results.get((rate, way, side))
            if taken is None:
                cells.append("")
                continue
            speed, used = (statistics.median(f[key] for f in taken) for key in taken[0])
            cells.append(f"{speed:.2f} ({used:.2f} s)")
        name = f"{rate:g} Gbit/s" if rate else "unshaped"
        print(f"| {name} | {way} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    all_sides = ["sockets", "gRPC", "sockets, TLS", "gRPC, TLS"]
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=16, help=f"messages of {MIB} MiB")
    parser.add_argument(
        "--rates", type=float, nargs="+", default=[8, 25, 0], help="Gbit/s; 0: all there is"
    )
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--sides", nargs="+", choices=all_sides, default=all_sides)
    options = parser.parse_args()
    results: dict[tuple[float, str, str], list[dict[str, float]]] = {}
    with link() as between:
        for _ in range(options.rounds):
            for rate in options.rates:
                between.set_rate(rate)
                for way in options.ways:
                    for side in options.sides:
                        if way == "all_reduce" and side.startswith("gRPC"):
                            continue  # which knows no collectives
                        figures = _measure(between, side, way, options.count)
                        results.setdefault((rate, way, side), []).append(figures)
    print(f"load of the machine meanwhile: {os.getloadavg()[1]:.1f}")
    _print_table(options.sides, results)


if __name__ == "__main__":
    main()
