"""How a profiler server and its client prove to each other that they are one user's.

The same rule as at the port of a runtime server (src/remote/handshake.h): both know the token in a file that only the
user reads, and neither sends it. The client asks for a challenge, and sends its request only to a server whose proof is
right; the request then carries the client's proof, which is good for it alone.
"""

import hashlib
import hmac
import os
import secrets
import time

from torch_xla import runtime_server
from torch_xla._internal import fork_lock

# Challenge: 32 random bytes of the client; the answer has 32 of the server's, and its proof.
CHALLENGE = "/torch_xla.Profiler/Challenge"
NONCE_BYTES = 32
CHALLENGE_ANSWER_BYTES = NONCE_BYTES + hashlib.sha256().digest_size
NONCE_HEADER = "torch-xla-nonce-bin"
PROOF_HEADER = "torch-xla-proof-bin"

_CHALLENGE_SECONDS = 30
# A server's nonce: until when it is good, what makes it one of a kind, and the server's own code over both.
_DEADLINE_BYTES = 8
_UNIQUE_BYTES = 8


def token() -> bytes:
    """This user's, made where there is none. Raises RuntimeError for a file that others may read or write."""
    path = runtime_server.own_token_file()
    status = path.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise RuntimeError(f"{path} must be this user's own (chmod 600)")
    return path.read_bytes().strip()


def _proof(key: bytes, side: bytes, port: int, *parts: bytes) -> bytes:
    """`parts` have fixed sizes. The port keeps a stranger at another one from passing things on."""
    return hmac.digest(
        key, b"profiler " + side + port.to_bytes(2, "big") + b"".join(parts), "sha256"
    )


def _request_proof(key: bytes, port: int, nonce: bytes, method: str, request: bytes) -> bytes:
    digest = hashlib.sha256(method.encode() + b"\0" + request).digest()
    return _proof(key, b"client", port, nonce, digest)


class ServerSide:
    """Of one server. Thread-safe.

    It remembers no challenge, but knows its own again, so that nobody's asking for many spoils another's. What it
    remembers are the nonces of requests that were right, for as long as they would be good.
    """

    def __init__(self) -> None:
        self.port = 0
        self._token = token()
        self._own_key = secrets.token_bytes(32)
        self._lock = fork_lock.Lock()
        self._used: dict[bytes, int] = {}

    def challenge(self, client_nonce: bytes) -> bytes:
        """The answer. Raises ValueError for what is no challenge."""
        if len(client_nonce) != NONCE_BYTES:
            raise ValueError(f"a challenge has {NONCE_BYTES} bytes")
        deadline = time.monotonic_ns() + _CHALLENGE_SECONDS * 10**9
        named = deadline.to_bytes(_DEADLINE_BYTES, "big") + secrets.token_bytes(_UNIQUE_BYTES)
        nonce = named + self._code(named)
        return nonce + _proof(self._token, b"server", self.port, client_nonce, nonce)

    def accepts(self, metadata: dict[str, str | bytes], method: str, request: bytes) -> bool:
        """Whether the request's proof is right; it is good once."""
        nonce, proof = metadata.get(NONCE_HEADER), metadata.get(PROOF_HEADER)
        if not isinstance(nonce, bytes) or not isinstance(proof, bytes):
            return False
        named, code = (
            nonce[: _DEADLINE_BYTES + _UNIQUE_BYTES],
            nonce[_DEADLINE_BYTES + _UNIQUE_BYTES :],
        )
        expected = _request_proof(self._token, self.port, nonce, method, request)
        if not hmac.compare_digest(code, self._code(named)) or not hmac.compare_digest(
            expected, proof
        ):
            return False
        deadline = int.from_bytes(named[:_DEADLINE_BYTES], "big")
        return deadline > time.monotonic_ns() and self._use(nonce, deadline)

    def _code(self, named: bytes) -> bytes:
        return hmac.digest(self._own_key, named, "sha256")[: NONCE_BYTES - len(named)]

    def _use(self, nonce: bytes, deadline: int) -> bool:
        """Whether it is the first time."""
        now = time.monotonic_ns()
        with self._lock:
            self._used = {known: until for known, until in self._used.items() if until > now}
            if nonce in self._used:
                return False
            self._used[nonce] = deadline
        return True


class ClientSide:
    """Of one request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._token = token()
        self.nonce = secrets.token_bytes(NONCE_BYTES)

    def metadata(
        self, answer: bytes, method: str, request: bytes
    ) -> tuple[tuple[str, bytes], tuple[str, bytes]] | None:
        """What the request takes along; None if the server's proof is wrong."""
        nonce, proof = answer[:NONCE_BYTES], answer[NONCE_BYTES:]
        expected = _proof(self._token, b"server", self._port, self.nonce, nonce)
        if not hmac.compare_digest(expected, proof):
            return None
        own = _request_proof(self._token, self._port, nonce, method, request)
        return (NONCE_HEADER, nonce), (PROOF_HEADER, own)
