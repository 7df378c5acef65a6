"""`python -m torch_xla.doctor` on programs that are slow on purpose, and the report in a real browser."""

import html
import json
import pathlib
import re
import shutil
import subprocess

import pytest
import torch

import torch_xla
from torch_xla.doctor import device_profile

# What is reported are programs. (The doctor sees to that itself, in the processes that it runs in.)
pytestmark = pytest.mark.usefixtures("module_of_programs")

SCRIPTS = pathlib.Path(__file__).parent / "slow_scripts"


def line_of(script: str, text: str) -> int:
    """The line of a script that contains a text, which no other does."""
    lines = (SCRIPTS / f"{script}.py").read_text().splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if text in line)
    return number


class Doctor:
    """Runs the doctor in a folder of its own."""

    def __init__(self, program) -> None:
        self.program = program
        self.folder = program.folder

    def run(self, *arguments: str, status: int = 0, **variables: str):
        result = self.program.run("-m", "torch_xla.doctor", *arguments, check=False, **variables)
        assert result.returncode == status, f"{result.stdout}\n{result.stderr}"
        return result

    def examine(self, script: str, *arguments: str, **variables: str) -> dict:
        """What `--json` says about one of the slow scripts, which is run by its name from its own folder."""
        self.folder = self.program.folder
        shutil.copy(SCRIPTS / f"{script}.py", self.folder)
        self.run("--json", "found.json", f"{script}.py", *arguments, **variables)
        return json.loads((self.folder / "found.json").read_text())


@pytest.fixture
def doctor(program) -> Doctor:
    return Doctor(program)


SLOW = {
    "metric_reads_values": ("read", "right.item()", "`right.item()` waits for the device"),
    "growing_lengths": (
        "recompile",
        "self.embedding(tokens)",
        "compiled anew: argument `tokens` of `Model.forward`, growing_lengths.py:18: shape [8, 18] was [8, 17]",
    ),
    "unlowered_operator": (
        "fallback",
        "torch.unique",
        "aten::unique_dim is not lowered and runs on the CPU",
    ),
}


@pytest.mark.parametrize("script", SLOW)
def test_the_cause_comes_first_with_its_line(doctor, script):
    kind, code, title = SLOW[script]
    found = doctor.examine(script, "12")
    first = found["causes"][0]
    assert first["kind"] == kind
    assert first["title"] == title
    assert first["place"] == f"{script}.py:{line_of(script, code)}"
    assert code in first["code"]
    assert first["seconds_per_step"] > 0
    assert first["remedy"]


def test_a_program_without_fault_has_no_cause(doctor):
    found = doctor.examine("without_fault", "12")
    assert found["causes"] == []
    assert found["ended"] == {"status": 0, "how": "finished"}


def test_the_list_names_cause_line_cost_and_remedy(doctor):
    shutil.copy(SCRIPTS / "growing_lengths.py", doctor.folder)
    result = doctor.run("growing_lengths.py", "6")
    assert result.stdout.startswith("loss ")
    text = re.sub(r"\s+", " ", result.stderr)
    assert re.search(
        r"growing_lengths.py finished\. 6 steps on xla:0 \(CPU:0\), [\d.]+ ms each", text
    )
    assert re.search(
        r"1\. \[recompile\] compiled anew: argument `tokens` .*: [\d.]+ ms a step \(\d+%\) "
        r"growing_lengths\.py:18: embedded = self\.embedding\(tokens\) .* -> Pad to one shape",
        text,
    )
    assert f"Report: {doctor.folder}/doctor.html" in text
    assert (doctor.folder / "doctor.html").exists()


def test_looking_at_the_program_changes_no_program(doctor):
    """Whoever holds a frame holds its tensors, which would be results of the step's program then."""
    write(
        doctor,
        """
import time, torch, torch_xla
x = torch.ones(64, device="xla")
torch_xla.sync()
def batches():
    for _ in range(30):
        time.sleep(0.006)
        yield 1.0
def compute(x):
    a = x * 2
    b = a + 1
    time.sleep(0.006)
    return b - a
for y in batches():
    x = compute(x) * y
    torch_xla.sync()
""",
    )
    doctor.run("--no-report", "--json", "found.json", "train.py")
    found = json.loads((doctor.folder / "found.json").read_text())
    assert len(found["compilations"]) <= 2
    code = {cause["place"]: cause for cause in found["causes"] if cause["kind"] == "python"}
    assert set(code) == {"train.py:7", "train.py:12"}
    assert 0.004 < code["train.py:7"]["seconds_per_step"] < 0.02


def test_however_long_the_first_steps_compile_later_ones_are_collected(device, monkeypatch):
    monkeypatch.setattr(device_profile, "_MOST_SECONDS", 0.0)
    collector = device_profile.Collector()
    collector.start()
    x = torch.ones(8, 8, device=device)
    for step in range(1, 5):
        x = torch.tanh(x @ x)
        torch_xla.sync(wait=True)
        assert collector.profile is None, step
        collector.step_ended()
    assert len(collector.profile.programs) == 1
    assert collector.profile.kernels


# --- Running the program ---


def write(doctor: Doctor, code: str) -> None:
    (doctor.folder / "train.py").write_text(code)


def test_the_program_is_run_as_the_interpreter_runs_it(doctor):
    (doctor.folder / "own").mkdir()
    (doctor.folder / "own" / "beside.py").write_text("name = 'beside'\n")
    (doctor.folder / "own" / "train.py").write_text(
        "import sys, pathlib, pickle, beside\n"
        "class Kept: pass\n"
        "print(__name__, sys.argv[1:], pathlib.Path(__file__).is_absolute(), beside.name, pickle.loads(pickle.dumps(Kept())).__class__ is Kept)\n"
        "print(sys.modules['__main__'].Kept is Kept)\n"
    )
    result = doctor.run("--no-report", "own/train.py", "--steps", "7", "-x")
    assert result.stdout == "__main__ ['--steps', '7', '-x'] True beside True\nTrue\n"
    assert "It did not use an xla device." in result.stderr
    assert not (doctor.folder / "doctor.html").exists()


def test_a_module_is_run_as_the_interpreter_runs_it(doctor):
    (doctor.folder / "package").mkdir()
    (doctor.folder / "package" / "train.py").write_text("import sys; print(__name__, sys.argv[1:])")
    result = doctor.run("--no-report", "-m", "package.train", "y")
    assert result.stdout == "__main__ ['y']\n"


STEPS = """
import torch, torch_xla
t = torch.ones(4, device="xla")
torch_xla.sync()
try:
    for step in range({steps}):
        t = t * 2
        torch_xla.sync()
        {body}
finally:
    print("ended at", step)
"""


@pytest.mark.parametrize(
    ("body", "status", "how"),
    [
        ("if step == 5: raise SystemExit(7)", 7, "ended with status 7"),
        pytest.param(
            "if step == 5: raise SystemExit('no more')",
            1,
            "ended: no more",
            marks=pytest.mark.exhaustive,
        ),
        ("if step == 5: raise ValueError('wrong')", 1, "raised ValueError: wrong"),
        (
            "if step == 5: import os, signal; os.kill(os.getpid(), signal.SIGINT)",
            130,
            "was interrupted",
        ),
    ],
)
def test_the_report_is_written_however_the_program_ends(doctor, body, status, how):
    write(doctor, STEPS.format(steps=9, body=body))
    result = doctor.run("--json", "found.json", "--report", "r.html", "train.py", status=status)
    found = json.loads((doctor.folder / "found.json").read_text())
    assert found["ended"] == {"status": status, "how": how}
    assert found["steps"]["count"] == 6
    assert "ended at 5" in result.stdout
    assert (doctor.folder / "r.html").read_text().startswith("<!doctype html>")
    if "ValueError" in body:
        assert result.stderr.lstrip().startswith("Traceback (most recent call last):")
        assert f'File "{doctor.folder}/train.py", line 9' in result.stderr
        assert "runpy" not in result.stderr and "torch_xla/doctor" not in result.stderr


def test_files_are_written_where_the_doctor_was_started(doctor):
    write(doctor, "import os; os.chdir('/')\n")
    doctor.run("--json", "found.json", "train.py")
    assert (doctor.folder / "found.json").exists() and (doctor.folder / "doctor.html").exists()


def test_the_program_is_ended_after_some_steps(doctor):
    write(doctor, STEPS.format(steps=10**9, body="pass"))
    result = doctor.run("--steps", "5", "--json", "found.json", "train.py")
    assert "ended at 4" in result.stdout
    found = json.loads((doctor.folder / "found.json").read_text())
    assert found["ended"] == {"status": 0, "how": "was ended after 5 steps"}
    assert found["steps"]["count"] == 5


LAUNCHED = """
import torch, torch_xla
import torch_xla.core.xla_model as xm

def train(index, name):
    t = torch.ones(4, device="xla")
    for step in range(12):
        t = xm.all_reduce(xm.REDUCE_SUM, t) / 2
        torch_xla.sync()
        if name == "fails" and step == 8:
            raise ValueError("no more")
        torch._standard_gamma_grad(t, t)
    print("process", index)

if __name__ == "__main__":
    torch_xla.launch(train, args=({name!r},))
"""


def test_launched_processes_are_watched(doctor):
    """Both, as both end after some steps; that of rank 0 tells."""
    write(doctor, LAUNCHED.format(name="two"))
    options = ["--json", "found.json", "--fail-on", "fallback"]
    result = doctor.run(*options, "train.py", status=3, CPU_NUM_DEVICES="2")
    assert result.stderr.count("train.py finished.") == 1
    assert result.stdout.count("process") == 2
    found = json.loads((doctor.folder / "found.json").read_text())
    assert found["steps"]["count"] >= 10
    (fallback,) = (cause for cause in found["causes"] if cause["kind"] == "fallback")
    assert fallback["code"] == "torch._standard_gamma_grad(t, t)"
    assert (doctor.folder / "doctor.html").exists()
    result = doctor.run("--no-report", "--steps", "4", "train.py", CPU_NUM_DEVICES="2")
    assert result.stderr.count("was ended after 4 steps") == 1


def test_a_launched_process_that_fails_tells_what_was_found(doctor):
    write(doctor, LAUNCHED.format(name="fails"))
    result = doctor.run("--no-report", "train.py", status=1, CPU_NUM_DEVICES="2")
    assert "train.py raised ValueError: no more" in result.stderr
    assert "ProcessRaisedException" in result.stderr


# --- For continuous integration ---


@pytest.mark.parametrize(
    ("script", "kinds", "status"),
    [
        ("unlowered_operator", "recompile,fallback", 3),
        ("unlowered_operator", "recompile, read", 0),
        ("without_fault", "any", 0),
    ],
)
def test_fail_on(doctor, script, kinds, status):
    doctor.run("--no-report", "--fail-on", kinds, str(SCRIPTS / f"{script}.py"), "8", status=status)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail-on", "slowness", "train.py"], "slowness is none of read, recompile, fallback"),
        ([], "which program?"),
        (["absent.py"], "there is no file absent.py"),
        (["--steps", "0", "train.py"], "0 is not at least 1"),
    ],
)
def test_a_wrong_command_line_is_said(tmp_path, monkeypatch, capsys, arguments, message):
    from torch_xla.doctor.__main__ import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err


def test_the_json_has_the_documented_form(doctor):
    found = doctor.examine("growing_lengths", "6")
    assert found["version"] == 1
    assert found["script"] == "growing_lengths.py" and found["arguments"] == ["6"]
    assert found["device"] == "xla:0 (CPU:0)"
    assert set(found["steps"]) == {"count", "measured", "seconds", "phases"}
    assert sum(found["steps"]["phases"].values()) == pytest.approx(
        found["steps"]["seconds"], rel=0.05
    )
    cause = found["causes"][0]
    assert set(cause) == set(
        "kind title place file line function code seconds_per_step share count remedy details".split()
    )
    assert pathlib.Path(cause["file"]).name == "growing_lengths.py"
    assert cause["function"] == "Model.forward"
    assert 0 < cause["share"] <= 1
    compilations = found["compilations"]
    assert [c["step"] for c in compilations if c["kind"] == "argument"] == [2, 3, 4, 5]
    assert compilations[0]["kind"] is None and compilations[0]["change"] is None
    assert found["memory"]["peak_bytes"] > 100 * 64 * 4
    assert found["memory"]["holdings"][0]["bytes"] > 0
    assert 0 < found["device_seconds"] < found["steps"]["seconds"]
    assert 0 <= found["overlap_seconds"] <= found["device_seconds"]
    assert found["peaks"]["flops"] > 1e9 and found["peaks"]["bytes"] > 1e8
    products = [kernel for kernel in found["kernels"] if kernel["category"] == "dot"]
    lines = {kernel["place"] for kernel in products}
    line = line_of("growing_lengths", "self.head(mixed)")
    assert f"growing_lengths.py:{line}" in lines
    head = next(kernel for kernel in products if kernel["line"] == line)
    assert head["flops"] % (2 * 8 * 64 * 100) == 0
    assert 0 < head["roofline"] <= 1 and head["bound"] in ("compute", "memory")


# --- The report in a browser ---


def browse(page: pathlib.Path, *options: str) -> tuple[str, str]:
    """The page's document after its scripts have run, and what the browser says on the way."""
    result = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         f"--user-data-dir={page.parent / 'profile'}", "--enable-logging=stderr", "--v=0",
         "--window-size=1180,2600", *options, page.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


def test_the_report_is_drawn_by_a_browser(doctor):
    doctor.examine("growing_lengths", "8")
    page = doctor.folder / "doctor.html"
    text = page.read_text()
    # It needs nothing from elsewhere.
    assert not re.search(
        r"(src|href)=[\"'](?!data:)|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text
    )
    document, said = browse(page, "--dump-dom")
    assert "CONSOLE" not in said
    assert 'data-drawn="yes"' in document
    sections = re.findall(r'<section id="([a-z]+)"', document)
    assert sections == ["step", "causes", "timeline", "compilations", "memory", "kernels"]
    plain = html.unescape(re.sub(r"<[^>]*>", " ", document.partition("<script")[0]))
    assert "compiled anew: argument `tokens` of `Model.forward`" in plain
    assert f"growing_lengths.py:{line_of('growing_lengths', 'self.embedding(tokens)')}" in plain
    assert "Pad to one shape" in plain
    assert "step 7" in plain
    picture = document.partition('<section id="compilations"')[2].partition("</section>")[0]
    assert picture.count("<circle") == len(re.findall(r'"operators":', text))
    kernels = document.partition('<section id="kernels"')[2].partition("</section>")[0]
    assert f"growing_lengths.py:{line_of('growing_lengths', 'self.head(mixed)')}" in kernels
    assert kernels.count("<circle") > 3 and "GFLOP/s" in kernels
    timeline = document.partition('<section id="timeline"')[2].partition("</section>")[0]
    assert {"Program", "Device", "Kernels"} <= set(re.findall(r">([A-Z][a-z]+)</text>", timeline))
    assert "NaN" not in document and "undefined" not in plain


def test_text_of_the_program_does_no_harm_in_the_report(doctor):
    (doctor.folder / "train.py").write_text(
        STEPS.format(
            steps=6, body="t.sum().item(); '</script><script>document.title = 1</script><!--'"
        )
    )
    doctor.run("train.py")
    document, said = browse(doctor.folder / "doctor.html", "--dump-dom")
    assert "CONSOLE" not in said
    assert "<title>torch_xla doctor</title>" in document and 'data-drawn="yes"' in document
    assert "&lt;/script&gt;&lt;script&gt;" in document


def test_a_program_without_steps_has_a_report(doctor):
    write(doctor, "print('nothing')\n")
    doctor.run("train.py")
    document, said = browse(doctor.folder / "doctor.html", "--dump-dom")
    assert "CONSOLE" not in said and 'data-drawn="yes"' in document
    assert "It used no xla device." in document
