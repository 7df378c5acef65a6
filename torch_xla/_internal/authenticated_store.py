"""A store whose values only those who know the job's secret can write.

A value is kept with the rank of the process that has set it, and an HMAC-SHA256 over its key, this rank and the value.
Without a right one it is refused, so what strangers put into the store is never looked at. Counters (`add`) are numbers,
which the store adds up itself; they carry none.
"""

import datetime
import hashlib
import hmac
from collections.abc import Sequence

import torch.distributed as dist

from torch_xla._internal import job_secret

_CODE_BYTES = hashlib.sha256().digest_size
_RANK_BYTES = 4


class ForeignValueError(RuntimeError):
    """A value does not come from a process of the job."""


def seal(secret: bytes, key: str, rank: int, value: bytes) -> bytes:
    """The value as it is kept."""
    named = rank.to_bytes(_RANK_BYTES, "big") + value
    return _code(secret, key, named) + named


def unseal(secret: bytes, key: str, kept: bytes) -> bytes:
    """The value; raises ForeignValueError unless one who knows the secret has sealed it under this key."""
    code, named = kept[:_CODE_BYTES], kept[_CODE_BYTES:]
    if len(named) >= _RANK_BYTES and hmac.compare_digest(code, _code(secret, key, named)):
        return named[_RANK_BYTES:]
    claimed = "of nobody"
    if len(named) >= _RANK_BYTES:
        claimed = f"of rank {int.from_bytes(named[:_RANK_BYTES], 'big')}"
    raise ForeignValueError(
        f"The value of {key!r} in the processes' store says that it is {claimed}, but whoever set it does not know the "
        f"job's secret: it is refused. A stranger may have set it, or {job_secret.SECRET_VARIABLE} is not the same in "
        "all processes."
    )


def _code(secret: bytes, key: str, named: bytes) -> bytes:
    code = hmac.new(secret, digestmod=hashlib.sha256)
    # The length keeps apart where the key ends and the value begins.
    code.update(len(key.encode()).to_bytes(8, "big"))
    code.update(key.encode())
    code.update(named)
    return code.digest()


class AuthenticatedStore(dist.Store):
    """Seals what it sets in another store, and refuses what is not sealed.

    The names in camel case are those by which torch's C++ code looks for the methods.
    """

    def __init__(self, store: dist.Store, secret: bytes, rank: int) -> None:
        super().__init__()
        self._store = store
        self._secret = secret
        self._rank = rank
        # torch's C++ code does not keep the Python objects that it calls.
        self._clones: list[AuthenticatedStore] = []

    def clone(self) -> "AuthenticatedStore":
        self._clones.append(AuthenticatedStore(self._store.clone(), self._secret, self._rank))
        return self._clones[-1]

    def set(self, key: str, value: bytes | str) -> None:
        self._store.set(key, self._sealed(key, value))

    def get(self, key: str) -> bytes:
        self.wait([key])
        return unseal(self._secret, key, self._store.get(key))

    def compare_set(self, key: str, expected: bytes | str, desired: bytes | str) -> bytes:
        expected = expected.encode() if isinstance(expected, str) else expected
        kept = b""
        if self._store.check([key]):
            kept = self._store.get(key)
            value = unseal(self._secret, key, kept)
            if value != expected:
                return value
        elif expected:
            return expected
        sealed = self._sealed(key, desired)
        found = self._store.compare_set(key, kept, sealed)
        # Another process may have been faster.
        return unseal(self._secret, key, found) if found else b""

    def add(self, key: str, amount: int) -> int:
        return self._store.add(key, amount)

    def check(self, keys: Sequence[str]) -> bool:
        return self._store.check(list(keys))

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        self._store.wait(list(keys), self.timeout if timeout is None else timeout)

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(key)

    deleteKey = delete_key  # noqa: N815

    def num_keys(self) -> int:
        return self._store.num_keys()

    getNumKeys = num_keys  # noqa: N815

    def _sealed(self, key: str, value: bytes | str) -> bytes:
        value = value.encode() if isinstance(value, str) else value
        return seal(self._secret, key, self._rank, value)
