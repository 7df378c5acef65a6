"""Causes found in made-up runs, whose times are known."""

import pytest

from torch_xla.debug.what_changed import Change, Location
from torch_xla.doctor import causes
from torch_xla.doctor.causes.cause import Measure
from torch_xla.doctor.device_profile import DeviceProfile, Kernel, Run
from torch_xla.doctor.host_samples import HostSample
from torch_xla.doctor.program_run import (
    Compilation,
    Execution,
    Interval,
    ProgramRun,
    Site,
    StepEnd,
    WideOperator,
    innermost_parts,
)

MAIN = 1


def at(line: int, function: str = "train") -> Site:
    return Site(Location("/project/train.py", line, function))


def run_of(steps: int = 10, step_seconds: float = 0.1, device_seconds: float = 0.099) -> ProgramRun:
    """Steps of which each starts one program just before its end, on a device that works for a part of each."""
    run = ProgramRun(main_thread=MAIN, start=0.0, end=steps * step_seconds)
    run.device = DeviceProfile(0.0, run.end + 1)
    for n in range(steps + 1):
        end = n * step_seconds
        run.executions.append(Execution(end - 0.001, 7, 50, MAIN))
        run.step_ends.append(StepEnd(end - 0.002, end, "user torch_xla.sync", False, at(40)))
        run.intervals.append(Interval("sync", end - 0.002, end, MAIN))
        run.device.programs.append(Run(end - 0.001, end - 0.001 + device_seconds, "program"))
    run.recording_lines[7] = [(Location("/project/train.py", 12, "train"), 30)]
    return run


def add(run: ProgramRun, kind: str, offset: float, seconds: float, site: Site, **more) -> None:
    """An interval in each step."""
    for end in run.step_ends[:-1]:
        start = end.end + offset
        run.intervals.append(Interval(kind, start, start + seconds, MAIN, site=site, **more))


def test_intervals_within_each_other_become_parts():
    outer, inner = Interval("sync", 0, 10, 1), Interval("compile", 2, 5, 1)
    last, apart = Interval("read", 5, 6, 1), Interval("input", 20, 21, 1)
    parts = [
        (p.interval.kind, p.start, p.end) for p in innermost_parts([apart, inner, last, outer])
    ]
    assert parts == [
        ("sync", 0, 2), ("compile", 2, 5), ("read", 5, 6), ("sync", 6, 10), ("input", 20, 21),
    ]  # fmt: skip


def test_a_healthy_run_has_no_cause():
    run = run_of()
    assert causes.find(run) == []
    assert len(run.steps()) == 10 and len(run.measured_steps()) == 8
    measure = Measure(run)
    assert measure.seconds_per_step == pytest.approx(0.1)
    assert measure.busy_seconds_per_step() == pytest.approx(0.099)
    # All but the millisecond in which the program starts the next.
    assert measure.overlap_seconds_per_step() == pytest.approx(0.098)


def test_what_only_the_observation_takes_does_not_count():
    run = run_of()
    add(run, "doctor", 0.01, 0.02, at(1))
    run.noting = [(n * 0.1, n * 0.03) for n in range(11)]
    assert Measure(run).seconds_per_step == pytest.approx(0.05)
    phases = run.phases(run.measured_steps())
    assert set(phases) == {"sync", "python"}
    assert phases["python"] / 8 == pytest.approx(0.048)


def test_a_read_costs_the_time_until_the_next_program_starts():
    run = run_of()
    add(run, "read", 0.05, 0.02, at(33), name=".item()")
    (cause,) = causes.find(run)
    assert (cause.kind, cause.location.line, cause.count) == ("read", 33, 8)
    # From 0.07 to 0.099, but for the 1 ms of the sync in it, which is the program's own too.
    assert cause.seconds_per_step == pytest.approx(0.029, abs=2e-3)


def test_no_more_is_saved_than_the_device_works():
    run = run_of(device_seconds=0.004)
    add(run, "read", 0.05, 0.02, at(33))
    found = {cause.kind: cause for cause in causes.find(run)}
    assert found["read"].seconds_per_step == pytest.approx(0.004)
    # What remains is that the program itself takes so long.
    assert found["recording"].location.line == 12
    assert found["recording"].seconds_per_step == pytest.approx(0.078 - 0.004, abs=2e-3)


def test_a_fallback_costs_all_but_what_the_device_computes_meanwhile():
    run = run_of(device_seconds=0.03)
    add(run, "fallback", 0.01, 0.08, at(21), name="aten::bincount")
    cause = causes.find(run)[0]
    assert (cause.kind, cause.title) == (
        "fallback",
        "aten::bincount is not lowered and runs on the CPU",
    )
    # The device works until 0.029; 0.019 of the 0.08 are its. Then 0.009 until the next program.
    assert cause.seconds_per_step == pytest.approx(0.061 + 0.009, abs=2e-3)


def compiled(run: ProgramRun, kind: str, steps, line: int = 5, seconds: float = 0.05) -> None:
    for n in steps:
        start = run.step_ends[n].end + 0.01
        change = Change(kind, f"{kind} {n}", at(line).location)
        run.compilations.append(
            Compilation(start, start + seconds, change, "user torch_xla.sync", at(40), "", 50, True)
        )


@pytest.mark.parametrize(
    ("kind", "steps", "is_cause"),
    [
        ("argument", [5], True),
        ("argument", [0, 1], False),  # while the program gets going
        ("branch", [5], False),  # the second of two programs that take turns
        ("branch", [5, 6], True),
        ("everything", [5, 6], False),  # new parts of the program
        ("everything", [5, 6, 7], True),
    ],
)
def test_recompilations(kind, steps, is_cause):
    run = run_of(step_seconds=0.1)
    compiled(run, kind, steps)
    found = causes.find(run)
    assert [cause.kind for cause in found] == (["recompile"] if is_cause else [])
    if is_cause:
        assert found[0].seconds_per_step == pytest.approx(0.05 * len(steps) / 8)
        assert found[0].location.line == 5


def test_waiting_for_batches_and_uploads():
    run = run_of(device_seconds=0.03)
    add(run, "input", 0.0, 0.06, at(50))
    add(run, "upload", 0.07, 0.02, at(51))
    found = [(c.kind, c.location.line, round(c.seconds_per_step, 3)) for c in causes.find(run)]
    assert found[:2] == [("input", 50, 0.06), ("upload", 51, 0.02)]


def test_python_code_that_records_nothing():
    run = run_of(device_seconds=0.03)
    run.recorded_lines = {("/project/train.py", 12)}
    for end in run.step_ends[:-1]:
        for n in range(10):
            line = 12 if n < 4 else 70 + n % 2
            place = at(line, "train" if n < 4 else "batches.<locals>.<listcomp>").location
            time = end.end + n * 0.008 + 0.001
            run.host_samples.append(HostSample(time, 0.008, place, place, False))
    found = {cause.kind: cause for cause in causes.find(run)}
    assert found["python"].title == "Python code in `batches` records nothing"
    assert found["python"].location.line in (70, 71)
    assert found["python"].seconds_per_step == pytest.approx(6 * 0.008, rel=0.1)
    # What remains of the step's 98 ms, less what runs at the same time.
    assert found["recording"].seconds_per_step == pytest.approx(0.098 - 0.048 - 0.03, abs=5e-3)


def test_a_step_end_that_waits():
    run = run_of()
    run.step_ends = [end._replace(waits=True) for end in run.step_ends]
    (cause,) = causes.find(run)
    assert (cause.kind, cause.location.line) == ("wait", 40)
    # Nothing follows the last one.
    assert cause.seconds_per_step == pytest.approx(0.099 * 7 / 8)


def test_no_step_end():
    run = run_of()
    run.step_ends = []
    add_to = Interval("read", 0.2, 0.3, MAIN, site=at(60))
    run.intervals.append(add_to)
    cause = causes.find(run)[0]
    assert (cause.kind, cause.location.line) == ("no-step-end", 60)


def test_small_steps():
    run = run_of(steps=40, step_seconds=0.0003, device_seconds=0.0001)
    run.step_ends = [end._replace(start=end.end - 0.0001) for end in run.step_ends]
    run.executions = [
        execution._replace(start=end.end - 0.00005, operators=2)
        for execution, end in zip(run.executions, run.step_ends, strict=True)
    ]
    run.intervals = [Interval("sync", end.start, end.end, MAIN) for end in run.step_ends]
    assert "small-steps" in [cause.kind for cause in causes.find(run)]


def test_float64_and_copies():
    run = run_of()
    line = Location("/project/train.py", 9, "train")
    run.wide_operators[7] = [WideOperator("mm", line, 4096), WideOperator("add", None, 1)]
    run.device.kernels = [
        Kernel("dot.1", "f64[64,64] dot", "dot", "aten::mm", line, 1e6, 1e5, count=10, seconds=0.4),
        Kernel("copy.2", "f32[8] copy", "copy", "aten::clone", None, 0, 64, count=10, seconds=0.2),
    ]
    wide, copies = causes.find(run)
    assert (wide.kind, wide.location, wide.count) == ("float64", line, 1)
    assert wide.seconds_per_step == pytest.approx(0.02)
    assert (copies.kind, copies.seconds_per_step) == ("copies", pytest.approx(0.02))
