"""Where the secret of a job comes from, and which ones are refused."""

import os

import pytest

from torch_xla._internal import job_secret

SECRET = "s" * job_secret.LEAST_LENGTH


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in (job_secret.SECRET_VARIABLE, job_secret.FILE_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "secret"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    monkeypatch.setenv(job_secret.FILE_VARIABLE, str(path))
    return path


def test_a_job_without_a_secret():
    assert job_secret.job_secret() is None
    assert not job_secret.is_set(os.environ)


def test_from_the_environment(monkeypatch):
    monkeypatch.setenv(job_secret.SECRET_VARIABLE, SECRET)
    assert job_secret.job_secret() == SECRET.encode()
    assert job_secret.is_set(os.environ)


def test_from_a_file(file):
    assert job_secret.job_secret() == SECRET.encode()


def test_the_variable_goes_before_the_file(file, monkeypatch):
    monkeypatch.setenv(job_secret.SECRET_VARIABLE, "t" * 40)
    assert job_secret.job_secret() == b"t" * 40


def test_new_ones_are_long_enough_and_differ(monkeypatch):
    assert job_secret.new() != job_secret.new()
    monkeypatch.setenv(job_secret.SECRET_VARIABLE, job_secret.new())
    assert len(job_secret.job_secret()) == 64


def test_short_ones_are_refused(file, monkeypatch):
    file.write_text("s" * 31 + "\n")
    with pytest.raises(ValueError, match=r"FILE=.*at least 32 characters.* has 31"):
        job_secret.job_secret()
    monkeypatch.setenv(job_secret.SECRET_VARIABLE, "short")
    with pytest.raises(ValueError, match=r"JOB_SECRET: .* has 5") as raised:
        job_secret.job_secret()
    assert "short" not in str(raised.value).partition("One can")[0]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_use_is_refused(file, mode):
    file.chmod(mode)
    with pytest.raises(ValueError, match=f"has mode {mode:04o}: others may use it"):
        job_secret.job_secret()


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can give files away.")
def test_a_file_of_another_user_is_refused(file):
    os.chown(file, 12345, -1)
    with pytest.raises(ValueError, match="belongs to another user"):
        job_secret.job_secret()


def test_what_is_no_file_is_refused(file, monkeypatch):
    file.unlink()
    with pytest.raises(ValueError, match="cannot be read"):
        job_secret.job_secret()
    monkeypatch.setenv(job_secret.FILE_VARIABLE, "/dev/zero")
    with pytest.raises(ValueError, match="is no file"):
        job_secret.job_secret()


def test_other_processes_are_not_told():
    environment = {job_secret.SECRET_VARIABLE: "a", job_secret.FILE_VARIABLE: "b", "HOME": "c"}
    assert job_secret.without(environment) == {"HOME": "c"}
