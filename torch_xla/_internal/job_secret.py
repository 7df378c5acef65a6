"""The secret of a job: whoever knows it belongs to the job.

It comes out of band, in the environment: TORCH_XLA_JOB_SECRET holds it, or TORCH_XLA_JOB_SECRET_FILE names a file of
the user's own that does. `torch_xla.launch` makes one for the processes of one machine, `xla_dist` for those of several.
A secret is for one job: values of an earlier one could be shown to a later one that has the same.
"""

import os
import secrets
import stat
from collections.abc import Mapping

SECRET_VARIABLE = "TORCH_XLA_JOB_SECRET"
FILE_VARIABLE = "TORCH_XLA_JOB_SECRET_FILE"
LEAST_LENGTH = 32
_MOST_BYTES = 4096


def job_secret() -> bytes | None:
    """The secret of this process's job, or None if the job has none.

    Raises ValueError if it is too short, or the file cannot be read, is another user's, or can be read by others.
    """
    text = os.environ.get(SECRET_VARIABLE)
    if text:
        return _checked(text.encode(), SECRET_VARIABLE)
    path = os.environ.get(FILE_VARIABLE)
    if path:
        return _checked(_read(path), f"{FILE_VARIABLE}={path}")
    return None


def is_set(environment: Mapping[str, str]) -> bool:
    """Whether the environment gives its processes a secret."""
    return bool(environment.get(SECRET_VARIABLE) or environment.get(FILE_VARIABLE))


def without(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that does not belong to the job."""
    return {
        name: value
        for name, value in environment.items()
        if name not in (SECRET_VARIABLE, FILE_VARIABLE)
    }


def new() -> str:
    """A secret that nobody knows yet."""
    return secrets.token_hex(32)


def _checked(secret: bytes, where: str) -> bytes:
    if len(secret) < LEAST_LENGTH:
        raise ValueError(
            f"{where}: a secret of at least {LEAST_LENGTH} characters is expected, and this one has {len(secret)}. "
            'One can be made with: python3 -c "import secrets; print(secrets.token_hex(32))"'
        )
    return secret


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            # Of the file that is open, which nobody can replace any more.
            status = os.fstat(file.fileno())
            _check_owner(path, status)
            return file.read(_MOST_BYTES).strip()
    except OSError as error:
        raise ValueError(f"{FILE_VARIABLE}={path} cannot be read: {error}") from error


def _check_owner(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{FILE_VARIABLE}={path} is no file.")
    if status.st_uid not in (0, os.geteuid()):
        raise ValueError(
            f"{FILE_VARIABLE}={path} belongs to another user (id {status.st_uid}), who knows what is in it."
        )
    if status.st_mode & 0o077:
        raise ValueError(
            f"{FILE_VARIABLE}={path} has mode {stat.S_IMODE(status.st_mode):04o}: others may use it. chmod 600 keeps "
            "it to its owner."
        )
