"""torch_xla.experimental.distributed_checkpoint; worlds/checkpoint_manager.py holds the checks of several processes."""

import concurrent.futures
import json
import os
import pathlib
import signal
import time

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException

import torch_xla
from torch_xla import _XLAC
from torch_xla.experimental.distributed_checkpoint import (
    CheckpointManager,
    SPMDSavePlanner,
    _preemption,
    prime_optimizer,
)
from torch_xla.experimental.distributed_checkpoint._helpers import _sharded_cpu_state_dict
from torch_xla.experimental.distributed_checkpoint.manager import _sendable

WORLDS = pathlib.Path(__file__).parent / "worlds"


@pytest.fixture(scope="module", autouse=True)
def group(tmp_path_factory):
    store = dist.FileStore(str(tmp_path_factory.mktemp("store") / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def manager(path, interval=10, **options):
    return CheckpointManager(path, interval, chkpt_on_preemption=False, **options)


def state(value):
    return {
        "weights": {"w": torch.full((3, 2), float(value), device="xla")},
        "on the CPU": torch.full((2,), float(value)),
        "step": value,
    }


def values(state):
    return [state["weights"]["w"].tolist(), state["on the CPU"].tolist(), state["step"]]


def test_the_steps_of_the_interval_are_saved(tmp_path):
    checkpoints = manager(tmp_path, 5)
    saved = [step for step in range(12) if checkpoints.save(step, state(step))]
    assert saved == checkpoints.all_steps() == [0, 5, 10]
    assert checkpoints.save(7, state(7), force=True)
    loaded = state(-1)
    weights = loaded["weights"]["w"]
    for step in (5, 7, 0):
        checkpoints.restore(step, loaded)
        assert values(loaded) == values(state(step))
    assert loaded["weights"]["w"] is weights and weights.device.type == "xla"
    with pytest.raises(ValueError, match="no checkpoint of step 3 in"):
        checkpoints.restore(3, loaded)


def test_a_path_is_no_pattern(tmp_path):
    (tmp_path / "run[1]").mkdir()
    (tmp_path / "run[1]" / "notes.txt").write_text("of the user's")
    manager(tmp_path / "run[1]").save(10, state(10))
    assert manager(tmp_path / "run[1]").all_steps() == [10]
    assert manager(tmp_path / "absent").all_steps() == []
    with pytest.raises(ValueError, match="is a pattern to fsspec"):
        manager("memory://run[1]")  # whose deletion would be that of run1


def test_the_oldest_are_deleted_by_time(tmp_path):
    checkpoints = manager(tmp_path, max_to_keep=2)
    for step in (30, 10, 20):
        checkpoints.save(step, state(step))
    assert checkpoints.all_steps() == [10, 20]
    checkpoints.save(10, state(11))  # is the newest now
    assert checkpoints.all_steps() == [20, 10]
    again = manager(tmp_path, max_to_keep=2)
    assert again.all_steps() == [20, 10]
    again.save(0, state(0))
    assert again.all_steps() == [10, 0] and sorted(os.listdir(tmp_path)) == ["0", "10"]
    loaded = state(-1)
    again.restore(10, loaded)
    assert values(loaded) == values(state(11))


def test_what_is_not_whole_counts_for_nothing(tmp_path, monkeypatch):
    checkpoints = manager(tmp_path)
    checkpoints.save(10, state(10))
    checkpoints.save(20, state(20))
    metadata = tmp_path / "10" / ".manager_metadata"
    assert json.loads(metadata.read_text()).keys() == {"step", "ts"}
    metadata.write_text("{")
    assert manager(tmp_path).all_steps() == [20]
    # A save that fails, of a step that is there.
    monkeypatch.setattr(SPMDSavePlanner, "resolve_data", lambda *_: 1 / 0)
    with pytest.raises(CheckpointException, match="division by zero"):
        checkpoints.save(20, state(21))
    assert checkpoints.all_steps() == [10, 20] and manager(tmp_path).all_steps() == [20]
    monkeypatch.undo()
    loaded = state(-1)
    checkpoints.restore(20, loaded)
    assert values(loaded) == values(state(20))
    checkpoints.save(20, state(21))
    checkpoints.restore(20, loaded)
    assert values(loaded) == values(state(21))
    assert sorted(os.listdir(tmp_path)) == ["10", "20"]  # what the failed one has left is gone


@pytest.mark.parametrize(
    "text",
    [
        b'{"step": 20, "ts": 1}',  # a copied folder
        b'{"step": 10.0, "ts": 1}',
        b'{"step": "10", "ts": 1}',
        b'{"step": 10, "ts": NaN}',
        b'{"step": 10, "ts": 1e999}',
        b'{"step": 10, "ts": true}',
        b'{"step": 10, "ts": "1"}',
        b'{"step": 10, "ts": 1' + b"0" * 400 + b"}",
        b'{"step": 10}',
        b"[]",
        b"1",
        b"[" * 100000,
        b"\xff",
        b"",
    ],
    ids=lambda text: repr(text[:24]),
)
def test_other_metadata_count_for_nothing(tmp_path, text):
    (tmp_path / "10").mkdir()
    (tmp_path / "10" / ".manager_metadata").write_bytes(text)
    assert manager(tmp_path).all_steps() == []


def test_an_entry_that_cannot_be_read_counts_for_nothing(tmp_path):
    (tmp_path / "10" / ".manager_metadata").mkdir(parents=True)
    (tmp_path / "20").write_text("a file")
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / ".manager_metadata").write_text('{"step": true, "ts": 1}')
    (tmp_path / "30").symlink_to("30")
    assert manager(tmp_path).all_steps() == []


def test_what_is_no_checkpoint_is_not_deleted(tmp_path):
    (tmp_path / "10").mkdir()
    checkpoints = manager(tmp_path)
    checkpoints.save(10, state(10))  # an empty one is no loss
    (tmp_path / "20").mkdir()
    (tmp_path / "20" / "notes.txt").write_text("of the user's")
    (tmp_path / "30").write_text("of the user's")
    for step in (20, 30):
        with pytest.raises(FileExistsError, match=f"{tmp_path}/{step} is not a checkpoint"):
            checkpoints.save(step, state(step))
    assert (tmp_path / "20" / "notes.txt").exists() and (tmp_path / "30").is_file()
    (tmp_path / "40").mkdir()
    (tmp_path / "40" / "__0_0.distcp").write_text("of a process that was killed")
    checkpoints.save(40, state(40))
    assert checkpoints.all_steps() == manager(tmp_path).all_steps() == [10, 40]


def test_steps_that_are_there_are_saved_anew_at_an_address():
    checkpoints = manager("memory://anew", max_to_keep=2)
    for value, step in enumerate((10, 20, 10, 30, 30)):
        checkpoints.save(step, state(value))
    assert checkpoints.all_steps() == manager("memory://anew").all_steps() == [10, 30]
    loaded = state(-1)
    for step, value in ((10, 2), (30, 4)):
        checkpoints.restore(step, loaded)
        assert values(loaded) == values(state(value))


def test_the_step_just_saved_is_the_newest(tmp_path, monkeypatch):
    checkpoints = manager(tmp_path, max_to_keep=1)
    for now, step in ((2e9, 10), (1e9, 20), (1e9, 30)):  # the clock is put back
        monkeypatch.setattr(time, "time", lambda now=now: now)
        checkpoints.save(step, state(step))
        assert checkpoints.all_steps() == manager(tmp_path).all_steps() == [step]


def test_steps_are_integers(tmp_path):
    checkpoints = manager(tmp_path)
    checkpoints.save(np.int64(10), state(10))
    checkpoints.save_async(np.int32(20), state(20))
    checkpoints.restore(np.int64(20), state(-1))
    assert [type(step) for step in checkpoints.all_steps()] == [int, int]
    assert checkpoints.save(True, state(1), force=True) and sorted(os.listdir(tmp_path))[0] == "1"
    for call in (
        lambda step: checkpoints.save(step, state(30)),
        lambda step: checkpoints.save_async(step, state(30)),
        lambda step: checkpoints.restore(step, state(30)),
        checkpoints.should_save,
        checkpoints.reached_preemption,
    ):
        with pytest.raises(TypeError):
            call(30.0)


def test_the_program_may_change_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoints = manager("run")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    checkpoints.save(10, state(10))
    checkpoints.restore(10, state(-1))
    assert os.listdir(tmp_path / "run") == ["10"] and os.listdir(tmp_path / "other") == []


def test_a_state_may_change_while_it_is_saved(tmp_path):
    checkpoints = manager(tmp_path, max_pending_async=2)
    changing = state(1)
    assert not checkpoints.save_async(5, changing)
    for step in (10, 20, 30):
        assert checkpoints.save_async(step, changing)
        changing["weights"]["w"].add_(1)
        changing["on the CPU"].add_(1)
        changing["step"] += 1
    checkpoints.join()
    assert checkpoints.all_steps() == [10, 20, 30]
    loaded = state(-1)
    for expected, step in enumerate((10, 20, 30), 1):
        checkpoints.restore(step, loaded)
        assert values(loaded) == values(state(expected))


def test_what_a_thread_fails_of_is_raised(tmp_path, monkeypatch):
    checkpoints = manager(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(SPMDSavePlanner, "resolve_data", lambda *_: 1 / 0)
        checkpoints.save_async(10, state(10))
        with pytest.raises(CheckpointException, match="division by zero"):
            checkpoints.join()
    assert checkpoints.all_steps() == []
    checkpoints.save_async(10, state(10))
    checkpoints.join()
    assert checkpoints.all_steps() == [10]


def test_failures_are_raised_by_calls_and_not_by_time(tmp_path, monkeypatch):
    checkpoints = manager(tmp_path, max_pending_async=2)
    with monkeypatch.context() as patch:
        patch.setattr(SPMDSavePlanner, "resolve_data", lambda *_: 1 / 0)
        checkpoints.save_async(10, state(10))
        concurrent.futures.wait(checkpoints._pending)
    checkpoints.save_async(20, state(20))  # though the first has failed already
    with pytest.raises(CheckpointException, match="division by zero"):
        checkpoints.save_async(30, state(30))
    checkpoints.save_async(30, state(30))
    checkpoints.join()
    assert checkpoints.all_steps() == [20, 30]


def test_failures_that_cannot_be_sent_are_raised(tmp_path):
    class OwnError(Exception):
        pass

    def fail(*_):
        raise OwnError("the disk is full")

    checkpoints = manager(tmp_path)
    checkpoints._finish = fail
    with pytest.raises(OwnError, match="the disk is full"):
        checkpoints.save(10, state(10))
    assert repr(_sendable(OwnError("full"))) == """RuntimeError("OwnError('full')")"""
    error = OSError("full")
    assert _sendable(error) is error


@pytest.mark.parametrize(
    "options", [{"interval": 0}, {"max_to_keep": -1}, {"max_pending_async": 0}], ids=str
)
def test_arguments_that_make_no_sense_are_refused(tmp_path, options):
    with pytest.raises(AssertionError, match="="):
        manager(tmp_path, **options)


def test_a_group_is_needed(program):
    program.run_code(
        """
import pytest
from torch_xla.experimental.distributed_checkpoint import CheckpointManager
with pytest.raises(AssertionError, match="init_process_group"):
    CheckpointManager(".", 1)
"""
    )


@pytest.fixture
def unwatched():
    before = signal.getsignal(signal.SIGTERM)
    yield
    _preemption.unwatch()
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_step_is_saved_when_the_process_is_to_end(tmp_path, unwatched):
    checkpoints = CheckpointManager(tmp_path, 100)
    assert not checkpoints.save(3, state(3)) and not checkpoints.reached_preemption(3)
    os.kill(os.getpid(), signal.SIGTERM)
    assert checkpoints.save(4, state(4)) and checkpoints.reached_preemption(4)
    assert checkpoints.all_steps() == [4]
    assert not manager(tmp_path, 100).reached_preemption(4)


def test_a_step_has_one_answer(tmp_path, unwatched):
    checkpoints = CheckpointManager(tmp_path, 100)
    assert not checkpoints.save(3, state(3))
    os.kill(os.getpid(), signal.SIGTERM)
    assert not checkpoints.reached_preemption(3)  # it was not saved
    assert checkpoints.save(4, state(4)) and checkpoints.reached_preemption(4)


def test_the_programs_own_handler_stays():
    before = signal.getsignal(signal.SIGTERM)
    try:
        _preemption.watch()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _preemption.unwatch()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_forked_process_ends(program):
    program.run_code(
        """
import os, signal, time
from torch_xla.experimental.distributed_checkpoint import _preemption
_preemption.watch()
child = os.fork()
if not child:
    time.sleep(100)
    os._exit(0)
time.sleep(0.5)
os.kill(child, signal.SIGTERM)
assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM
os.kill(os.getpid(), signal.SIGTERM)
assert _preemption.is_told()
"""
    )


def test_the_binding_tells_of_preemption(unwatched):
    _XLAC._ensure_xla_coordinator_initialized(global_rank=0, world_size=1, master_addr="localhost")
    _XLAC._activate_preemption_sync_manager()
    assert not _XLAC._sync_point_reached(1)
    os.kill(os.getpid(), signal.SIGTERM)
    assert _XLAC._sync_point_reached(2)
    _XLAC._deactivate_preemption_sync_manager()
    assert not _XLAC._sync_point_reached(3)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
        lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.1), weight_decay=0.1, capturable=True),
        lambda p: torch.optim.Adagrad(p),
        lambda p: torch.optim.RMSprop(p, centered=True),
    ],
    ids=["sgd", "adamw", "adagrad", "rmsprop"],
)
def test_a_state_can_be_loaded_into_a_primed_optimizer(tmp_path, make):
    torch.manual_seed(0)
    x = torch.randn(4, 3).to("xla")

    def trained(model, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
            torch_xla.sync()
        return [p.detach().cpu() for p in model.parameters()]

    model = torch.nn.Linear(3, 2).to("xla")
    optimizer = make(model.parameters())
    trained(model, optimizer, 3)
    checkpoints = manager(tmp_path, 1)
    checkpoints.save(3, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    expected = trained(model, optimizer, 2)

    other = torch.nn.Linear(3, 2).to("xla")
    before = [p.detach().cpu() for p in other.parameters()]
    gradient = torch.ones(3, device="xla").expand(2, 3).clone()
    other.weight.grad = gradient
    other_optimizer = make(other.parameters())
    rate = other_optimizer.param_groups[0]["lr"]
    assert prime_optimizer(other_optimizer) is other_optimizer
    assert other_optimizer.param_groups[0]["lr"] is rate
    assert other.weight.grad is gradient and other.bias.grad is None
    for parameter, value in zip(other.parameters(), before, strict=True):
        torch.testing.assert_close(parameter.detach().cpu(), value, rtol=0, atol=0)
    loaded = {"model": other.state_dict(), "optimizer": other_optimizer.state_dict()}
    checkpoints.restore(3, loaded)
    other.load_state_dict(loaded["model"])
    other_optimizer.load_state_dict(loaded["optimizer"])
    for a, b in zip(trained(other, other_optimizer, 2), expected, strict=True):
        torch.testing.assert_close(a, b)


def test_an_optimizer_with_a_state_stays_as_it_is():
    weight = torch.nn.Parameter(torch.ones(2, device="xla"))
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    weight.grad = torch.ones(2, device="xla")
    optimizer.step()
    prime_optimizer(optimizer)
    assert optimizer.state[weight]["momentum_buffer"].tolist() == [1, 1]


def test_copies_on_the_cpu_share_nothing():
    given = {"a": [torch.ones(2)], "b": torch.ones(2, device="xla"), "c": {"d": [1]}}
    copied = _sharded_cpu_state_dict(given)
    given["a"][0].zero_()
    given["b"].zero_()
    given["c"]["d"].append(2)
    assert [copied["a"][0].tolist(), copied["b"].tolist(), copied["c"]] == [
        [1, 1],
        [1, 1],
        {"d": [1]},
    ]
    assert copied["b"].device.type == "cpu"


def test_checkpoints_of_several_processes(program):
    result = program.run(str(WORLDS / "checkpoint_manager.py"), CPU_NUM_DEVICES="2", timeout=240)
    assert result.stdout.splitlines()[-1] == "passed"
