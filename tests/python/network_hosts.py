"""Hosts made of network namespaces: each has an address of its own, and an OpenSSH server that only this test knows."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator

SSHD = "/usr/sbin/sshd"


def why_not() -> str:
    """Why such hosts cannot be made here; empty if they can."""
    if os.geteuid() != 0:
        return "Only root can make network namespaces."
    for program in ("ip", "ssh", "ssh-keygen", SSHD):
        if shutil.which(program) is None:
            return f"{program} is not installed (iproute2, openssh-client, openssh-server)."
    name = f"try{uuid.uuid4().hex[:8]}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if tried.returncode != 0:
        return f"Network namespaces cannot be made: {tried.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", name], check=True)
    return ""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


class Host:
    """One namespace: commands can be run in it, and it can be reached by ssh."""

    def __init__(self, namespace: str, address: str, cable: str, bridge: str) -> None:
        self.namespace = namespace
        self.address = address
        self.cable = cable  # its end in the bridge
        self._bridge = bridge

    def command(self, *words: str) -> list[str]:
        """The command as it runs in the namespace."""
        return ["ip", "netns", "exec", self.namespace, *words]

    @contextlib.contextmanager
    def unplugged(self) -> Iterator[None]:
        """Nothing reaches the host meanwhile, and it notices nothing."""
        _ip("link", "set", self.cable, "nomaster")
        try:
            yield
        finally:
            _ip("link", "set", self.cable, "master", self._bridge)


class Network:
    """Hosts on one bridge, and how to reach them by ssh."""

    def __init__(self, folder: pathlib.Path, hosts: list[Host]) -> None:
        self.hosts = hosts
        self._folder = folder

    @property
    def names(self) -> str:
        """The addresses as `--hosts` takes them."""
        return ",".join(host.address for host in self.hosts)

    @property
    def ssh(self) -> str:
        """The ssh command for these hosts."""
        known = f"-o UserKnownHostsFile={self._folder}/known -o StrictHostKeyChecking=accept-new"
        return f"ssh -F none -i {self._folder}/key {known}"


@contextlib.contextmanager
def network(folder: pathlib.Path, count: int = 2) -> Iterator[Network]:
    """Makes the hosts, with their ssh servers; at the end nothing of them is left."""
    tag = uuid.uuid4().hex[:6]
    subnet = f"10.{213 + os.getpid() % 20}.{os.getpid() // 20 % 250}"
    bridge = f"br{tag}"
    for name in ("key", "host_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
        )
    hosts = [
        Host(f"host{tag}{i}", f"{subnet}.{i + 1}", f"ve{tag}{i}", bridge) for i in range(count)
    ]
    with contextlib.ExitStack() as stack:
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "delete", bridge)
        _ip("address", "add", f"{subnet}.254/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for host in hosts:
            _ip("netns", "add", host.namespace)
            stack.callback(_ip, "netns", "delete", host.namespace)
            peer = ["type", "veth", "peer", "name", "eth0", "netns", host.namespace]
            _ip("link", "add", host.cable, *peer)
            _ip("link", "set", host.cable, "master", bridge, "up")
            inside = ["-netns", host.namespace]
            _ip(*inside, "address", "add", f"{host.address}/24", "dev", "eth0")
            _ip(*inside, "link", "set", "eth0", "up")
            _ip(*inside, "link", "set", "lo", "up")
            stack.enter_context(_ssh_server(folder, host))
        yield Network(folder, hosts)


@contextlib.contextmanager
def _ssh_server(folder: pathlib.Path, host: Host) -> Iterator[None]:
    # The server gives up its rights in this folder.
    pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    settings = folder / f"{host.namespace}.config"
    settings.write_text(
        f"ListenAddress {host.address}:22\n"
        f"HostKey {folder}/host_key\n"
        f"AuthorizedKeysFile {folder}/key.pub\n"
        "PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
        "PermitRootLogin prohibit-password\n"
    )
    log = folder / f"{host.namespace}.log"
    server = subprocess.Popen(host.command(SSHD, "-D", "-f", str(settings), "-E", str(log)))
    try:
        _await_server(server, host, log)
        yield
    finally:
        server.terminate()
        server.wait()


def _await_server(server: subprocess.Popen, host: Host, log: pathlib.Path) -> None:
    end = time.monotonic() + 10
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((host.address, 22), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"The ssh server of {host.address} does not answer: {log.read_text()}")
