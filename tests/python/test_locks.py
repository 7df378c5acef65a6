"""The locks of requirements/: exactly the files whose hashes they hold are installed, and scripts/install takes no others."""

import base64
import hashlib
import re
import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


def entries(text: str) -> list[str]:
    """Each requirement with what follows it."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [entry for entry in re.split(r"\n(?=\S)", "\n".join(lines)) if entry]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_every_package_has_a_version_and_hashes(lock):
    found = entries(lock.read_text())
    assert found
    for entry in found:
        assert re.fullmatch(r"[a-z0-9-]+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+", entry), entry


def test_all_that_is_wanted_is_locked():
    def normal(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    locked = {
        normal(entry.partition("==")[0]) for lock in LOCKS for entry in entries(lock.read_text())
    }
    for file in (ROOT / "requirements").glob("*.in"):
        for line in file.read_text().splitlines():
            if line and not line.startswith("#"):
                assert normal(re.split(r"[^\w.-]", line)[0]) in locked, f"{line}: make lock"


def test_nothing_else_is_installed_by_pip():
    assert "pip install" not in (ROOT / "scripts" / "install").read_text()


def wheel(folder, content: str) -> str:
    """Makes a wheel, as whoever keeps an index could; its hash."""
    folder.mkdir()
    files = {
        "harmless.py": content,
        "harmless-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: harmless\nVersion: 1.0\n",
        "harmless-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ["harmless-1.0.dist-info/RECORD,,"]
    for name, text in files.items():
        code = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record.append(f"{name},sha256={code.decode()},{len(text)}")
    files["harmless-1.0.dist-info/RECORD"] = "\n".join(record) + "\n"
    path = folder / "harmless-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def install(tmp_path, folder: str, lock: str) -> subprocess.CompletedProcess[str]:
    """Installs a lock from a folder, by the script that scripts/install calls."""
    scripts, requirements = tmp_path / "scripts", tmp_path / "requirements"
    for made in (scripts, requirements):
        made.mkdir(exist_ok=True)
    script = scripts / "install_locked"
    script.write_text((ROOT / "scripts" / "install_locked").read_text())
    script.chmod(0o755)
    (requirements / "base.txt").write_text(lock)
    index = ["--no-index", "--find-links", str(tmp_path / folder)]
    target = str(tmp_path / f"target-{folder}")
    return subprocess.run(
        [str(script), sys.executable, "base", *index, "--target", target],
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.slow
def test_a_tampered_wheel_is_refused(tmp_path):
    lock = f"harmless==1.0 --hash=sha256:{wheel(tmp_path / 'honest', 'x = 1')}\n"
    wheel(tmp_path / "tampered", "x = 2")
    result = install(tmp_path, "honest", lock)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "target-honest" / "harmless.py").exists()
    result = install(tmp_path, "tampered", lock)
    assert result.returncode != 0 and "DO NOT MATCH THE HASHES" in result.stderr
    assert not (tmp_path / "target-tampered" / "harmless.py").exists()
    result = install(tmp_path, "honest", "harmless==1.0\n")
    assert result.returncode != 0 and "require" in result.stderr
