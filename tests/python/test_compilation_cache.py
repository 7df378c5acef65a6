"""Compiled programs that outlive their process: `torch_xla.runtime.initialize_cache`."""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import time

import pytest

# What is tested are programs: small graphs would have none at first.
pytestmark = pytest.mark.usefixtures("module_of_programs")

# Trains for some steps with a folder of programs, and prints what that took.
TRAINS = """
import json, os, sys
import torch, torch_xla
import torch_xla.debug.metrics as met
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr

def train(index, path, readonly):
    xr.initialize_cache(path, readonly=readonly)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to("xla")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    inputs = torch.randn(4, 8).to("xla")
    for _ in range(3):
        optimizer.zero_grad()
        loss = (model(inputs) ** 2).mean()
        loss.backward()
        xm.optimizer_step(optimizer)
        torch_xla.sync()
    names = ["ProgramCompile", "PersistentCacheHit", "PersistentCacheMiss", "PersistentCacheDeserializeFailure"]
    result = {name: met.counter_value(name) or 0 for name in names}
    result["loss"] = loss.item()
    result["compile_time"] = (met.metric_data("ProgramCompileTime") or (0,))[0]
    # At once: the processes of a world write to one pipe.
    os.write(1, (json.dumps(result) + "\\n").encode())

if __name__ == "__main__":
    torch_xla.launch(train, (sys.argv[1], sys.argv[2:] == ["readonly"]), start_method="fork")
"""


class Runs:
    """Runs the program above, each time in new processes."""

    def __init__(self, program) -> None:
        self._program = program
        self.path = program.folder / "cache"
        self._script = program.folder / "trains.py"
        self._script.write_text(TRAINS)
        self.stderr = ""

    def all(self, *arguments: str, **variables: str) -> list[dict]:
        result = self._program.run(
            str(self._script), str(self.path), *arguments, timeout=300, **variables
        )
        self.stderr = result.stderr
        return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]

    def one(self, *arguments: str, **variables: str) -> dict:
        (result,) = self.all(*arguments, **variables)
        return result

    def start(self):
        return self._program.start(str(self._script), str(self.path), pipes=("stdout", "stderr"))

    def entries(self) -> list[pathlib.Path]:
        return sorted(self.path.glob("*.program"))


@pytest.fixture
def runs(program) -> Runs:
    return Runs(program)


def assert_compiled_nothing(result: dict, like: dict) -> None:
    assert result["ProgramCompile"] == result["compile_time"] == 0
    assert result["PersistentCacheHit"] == like["ProgramCompile"] > 0
    assert result["PersistentCacheMiss"] == 0
    assert result["loss"] == like["loss"]


CACHE_VARIABLES = {"XLA_PERSISTENT_CACHE_PATH": "programs"}

STEP = """
import sys
import torch, torch_xla
import torch_xla.debug.metrics as met
if sys.argv[1:]:
    torch_xla.runtime.initialize_cache("programs", readonly=sys.argv[1] == "readonly")
x = torch.ones(16).to("xla")
y = x + x
torch_xla.sync()
assert y.tolist() == [2.0] * 16
print([met.counter_value(name) for name in
       ("PersistentCacheMiss", "PersistentCacheHit", "ProgramCompile", "InterpretedGraph")])
"""


@pytest.mark.parametrize("by", ["initialize_cache", "environment"])
def test_one_step_fills_the_folder(program, by):
    """Also of small graphs, which are interpreted first where nothing is kept; from the process's first graph on."""
    script = program.folder / "step.py"
    script.write_text(STEP)
    arguments, variables = (["keeps"], {}) if by == "initialize_cache" else ([], CACHE_VARIABLES)

    def counts(*arguments: str, **variables: str) -> str:
        result = program.run(str(script), *arguments, TORCH_XLA_INTERPRET="auto", **variables)
        return result.stdout.strip()

    outputs = [counts(*arguments, **variables) for _ in range(2)]
    assert outputs == ["[1, None, 1, None]", "[None, 1, None, None]"]
    assert counts("readonly") == "[None, None, None, 1]"


def test_second_start_compiles_nothing(program, engine):
    runs = Runs(program)
    dumps = [program.folder / "dump0", program.folder / "dump1"]
    first = runs.one(TORCH_XLA_DUMP=str(dumps[0]), **engine)
    assert first["ProgramCompile"] == first["PersistentCacheMiss"] == len(runs.entries()) > 0
    assert first["PersistentCacheHit"] == 0
    # In a process that has nothing of the first one's: neither its addresses nor its order of sets.
    second = runs.one(TORCH_XLA_DUMP=str(dumps[1]), PYTHONHASHSEED="1", **engine)
    assert_compiled_nothing(second, first)
    assert runs.stderr == ""
    # Nor has the engine itself, which writes there what it compiles.
    if engine["PJRT_DEVICE"] == "CPU":
        assert list(dumps[0].rglob("*")) and not list(dumps[1].rglob("*"))


def test_programs_of_other_passes_are_others(runs):
    first = runs.one()
    other = runs.one(TORCH_XLA_DISABLE_PASSES="fusion,simplify")
    assert other["PersistentCacheHit"] == 0 and other["PersistentCacheMiss"] > 0
    assert len(runs.entries()) == first["ProgramCompile"] + other["ProgramCompile"]
    assert other["loss"] == pytest.approx(first["loss"], rel=1e-5)
    again = runs.one(TORCH_XLA_DISABLE_PASSES="simplify,fusion")
    assert_compiled_nothing(again, other)


def test_readonly_uses_and_adds_nothing(runs):
    old = os.umask(0)
    try:
        first = runs.one()
    finally:
        os.umask(old)
    # Private, whatever the user's mask is.
    assert stat.S_IMODE(runs.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(entry.stat().st_mode) for entry in runs.entries()} == {0o600}
    kept, gone = runs.entries()[:1], runs.entries()[1:]
    for entry in gone:
        entry.unlink()
    second = runs.one("readonly")
    assert second["PersistentCacheHit"] == 1 and second["ProgramCompile"] == len(gone)
    assert second["loss"] == first["loss"]
    assert runs.entries() == kept


def test_two_processes_of_a_world_share_a_folder(runs):
    """A world's programs are its own: one process alone has others. All its processes have the same."""
    alone = runs.one()
    first = runs.all(CPU_NUM_DEVICES="2")
    assert len(first) == 2
    assert sum(result["PersistentCacheMiss"] for result in first) > 0
    second = runs.all(CPU_NUM_DEVICES="2")
    assert [result["ProgramCompile"] for result in second] == [0, 0]
    assert [result["loss"] for result in second] == [result["loss"] for result in first]
    assert (
        second[0]["PersistentCacheHit"]
        == first[0]["ProgramCompile"] + first[0]["PersistentCacheHit"]
    )
    assert len(runs.entries()) > alone["ProgramCompile"]
    assert runs.stderr == ""


def test_processes_that_start_at_once_share_a_folder(runs):
    processes = [runs.start() for _ in range(3)]
    results = []
    for process in processes:
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0 and errors == "", errors
        results.append(json.loads(output.splitlines()[-1]))
    assert len({result["loss"] for result in results}) == 1
    assert [name for name in os.listdir(runs.path) if not name.endswith(".program")] == []
    assert len(runs.entries()) == results[0]["PersistentCacheHit"] + results[0]["ProgramCompile"]
    assert_compiled_nothing(
        runs.one(), {"ProgramCompile": len(runs.entries()), "loss": results[0]["loss"]}
    )


def test_killed_processes_leave_whole_entries(runs):
    for _ in range(2):
        shutil.rmtree(runs.path, ignore_errors=True)
        process = runs.start()
        # Killed at the first entry that appears, when the next is perhaps being written.
        while process.poll() is None and not runs.entries():
            time.sleep(0.001)
        process.kill()
        process.communicate()
    kept = len(runs.entries())
    result = runs.one()
    assert kept > 0 and result["PersistentCacheHit"] == kept
    assert runs.stderr == ""


def cut(entry: pathlib.Path, good: pathlib.Path) -> None:
    os.truncate(entry, entry.stat().st_size // 2)


def empty(entry: pathlib.Path, good: pathlib.Path) -> None:
    os.truncate(entry, 0)


def change(entry: pathlib.Path, good: pathlib.Path) -> None:
    """A byte of the code."""
    content = bytearray(entry.read_bytes())
    content[-100] ^= 1
    entry.write_bytes(content)


def replace(entry: pathlib.Path, good: pathlib.Path) -> None:
    entry.write_bytes(os.urandom(5000))


def exchange(entry: pathlib.Path, good: pathlib.Path) -> None:
    """Another program's entry under this one's name."""
    entry.write_bytes(good.read_bytes())


def open_to_others(entry: pathlib.Path, good: pathlib.Path) -> None:
    entry.chmod(0o666)


def test_bad_entries_are_compiled_anew_with_a_warning(program, runs):
    damages = {
        cut: "it is cut off",
        empty: "it is cut off",
        change: "its checksum is wrong",
        replace: "it is no compiled program of this version",
        exchange: "it is another program's",
        open_to_others: "others may write to it",
    }
    # One graph for each; what they give is printed as the loss.
    (program.folder / "trains.py").write_text(
        TRAINS.replace("range(3)", "range(0)").replace(
            '    names = ["Pr',
            f"    t = torch.ones(3).to('xla')\n    for i in range({len(damages) + 1}):\n"
            '        t = torch.cat([t, t[:1] * 2])\n        torch_xla.sync()\n    loss = t.sum()\n    torch_xla.sync()\n    names = ["Pr',
        )
    )
    first = runs.one()
    entries = runs.entries()
    assert len(entries) > len(damages)
    good = entries.pop()
    for damage, entry in zip(damages, entries, strict=False):
        damage(entry, good)
    second = runs.one()
    assert second["ProgramCompile"] == len(damages)
    assert second["PersistentCacheHit"] == first["ProgramCompile"] - len(damages)
    assert second["loss"] == first["loss"]
    warnings = [line for line in runs.stderr.splitlines() if "is not used" in line]
    for (damage, reason), entry in zip(damages.items(), entries, strict=False):
        (warning,) = (line for line in warnings if entry.name in line)
        assert reason in warning, damage
    assert len(warnings) == len(damages)
    # The new ones have taken their places.
    assert_compiled_nothing(runs.one(), first)
    assert runs.stderr == ""


def test_refuses_a_folder_that_others_may_write_to(program, runs):
    runs.path.mkdir()
    runs.path.chmod(0o777)
    code = f"""
import torch_xla.runtime as xr
xr.initialize_cache({str(runs.path)!r})
"""
    result = program.run_code(code, check=False)
    assert result.returncode == 1
    assert "cannot be used" in result.stderr and "others may write to it" in result.stderr
    assert "Programs from it would be run" in result.stderr


def test_another_processor_has_programs_of_its_own(program, runs):
    runs.one()
    entries = len(runs.entries())
    result = run_on_another_processor(program, runs)
    assert result["PersistentCacheHit"] == 0 and result["PersistentCacheMiss"] == entries
    assert len(runs.entries()) == 2 * entries


def run_on_another_processor(program, runs) -> dict:
    """As it looks where /proc/cpuinfo, in a mount namespace of its own, lists another flag."""
    information = pathlib.Path("/proc/cpuinfo").read_text()
    other = program.folder / "cpuinfo"
    other.write_text(information.replace("flags\t\t: ", "flags\t\t: another_feature "))
    if other.read_text() == information:
        pytest.skip("/proc/cpuinfo has no flags here")
    unshare = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    bind = f"mount --bind {other} /proc/cpuinfo"
    if not shutil.which("unshare") or subprocess.run([*unshare, bind]).returncode != 0:
        pytest.skip("no mount namespaces here")
    command = f"{bind} && exec {sys.executable} {program.folder / 'trains.py'} {runs.path}"
    result = subprocess.run(
        [*unshare, command],
        env=program.environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return json.loads(result.stdout.splitlines()[-1])


def test_must_be_called_before_the_first_computation(program):
    result = program.run_code(
        """
import pathlib
import torch, torch_xla, torch_xla.runtime as xr
xr.initialize_cache(pathlib.Path("a"))
print(torch.ones(2, device="xla") + 1)
xr.initialize_cache("b")
""",
        check=False,
    )
    assert "RuntimeError: initialize_cache must be called before the first" in result.stderr
