"""Data loaders that move batches in the background."""

import gc
import threading
import time

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import torch_xla
import torch_xla.debug.metrics as met
import torch_xla.distributed.parallel_loader as pl


def loader_threads() -> int:
    return sum(thread.name == "parallel_loader" for thread in threading.enumerate())


def wait_for_no_threads() -> None:
    gc.collect()
    deadline = time.monotonic() + 5
    while loader_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert loader_threads() == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_yields_all_batches_in_order_again_and_again(device, threads):
    data = DataLoader(TensorDataset(torch.arange(20.0)), batch_size=3)
    loader = pl.MpDeviceLoader(
        data, device, host_to_device_transfer_threads=threads, device_prefetch_size=2
    )
    for _ in range(2):
        batches = [batch for (batch,) in loader]
        assert all(batch.device == device for batch in batches)
        assert torch.cat([batch.cpu() for batch in batches]).tolist() == list(range(20))
    assert len(loader) == 7
    wait_for_no_threads()


def test_moves_nested_batches(device):
    batches = [{"x": torch.ones(2), "more": [torch.zeros(1), "text", 3], "none": None}]
    (batch,) = pl.MpDeviceLoader(batches, device)
    assert batch["x"].is_xla and batch["more"][0].is_xla
    assert batch["more"][1:] == ["text", 3] and batch["none"] is None
    assert batches[0]["x"].device.type == "cpu"


def test_ends_a_step_with_each_batch(device):
    torch_xla.sync()
    before = met.counter_value("MarkStep") or 0
    for _ in pl.MpDeviceLoader([torch.ones(1)] * 6, device, batches_per_execution=2):
        pass
    assert (met.counter_value("MarkStep") or 0) - before == 3


def test_raises_what_the_loader_raises_at_its_turn(device):
    def batches():
        yield torch.zeros(1)
        yield torch.ones(1)
        raise OSError("the disk is gone")

    seen = []
    with pytest.raises(OSError, match="the disk is gone"):
        for batch in pl.MpDeviceLoader(batches(), device):
            seen.append(float(batch.cpu()))
    assert seen == [0.0, 1.0]
    wait_for_no_threads()


def test_leaving_early_ends_the_threads(device):
    def endless():
        while True:
            yield torch.zeros(1)

    for _ in pl.MpDeviceLoader(endless(), device):
        break
    wait_for_no_threads()


def test_passes_attributes_on(device):
    data = DataLoader(TensorDataset(torch.arange(4.0)), batch_size=2)
    loader = pl.MpDeviceLoader(data, device)
    assert loader.batch_size == 2 and loader.dataset is data.dataset
    loader.dataset = "mine"
    assert loader.dataset == "mine"
    with pytest.raises(AttributeError, match="colour"):
        _ = loader.colour


def test_order_of_batches_follows_the_seed(device):
    data = DataLoader(TensorDataset(torch.arange(50.0)), batch_size=10, shuffle=True)
    orders = []
    for _ in range(3):
        torch.manual_seed(7)
        orders.append(
            [batch.tolist() for (batch,) in pl.MpDeviceLoader(data, torch.device("cpu", 0))]
        )
    torch.manual_seed(7)
    assert orders == [[batch.tolist() for (batch,) in data]] * 3


def test_loads_while_the_step_runs(device):
    """Ten batches of 50 ms each and ten steps of 50 ms each take little more than one of the two."""

    def slow():
        for i in range(10):
            time.sleep(0.05)
            yield torch.full((4,), float(i))

    start = time.monotonic()
    for batch in pl.MpDeviceLoader(slow(), device):
        time.sleep(0.05)
        batch + 1
    assert time.monotonic() - start < 0.85


def test_prefetches_no_more_than_asked(device):
    taken = []

    def counting():
        for i in range(100):
            taken.append(i)
            yield torch.zeros(1)

    iterator = iter(
        pl.MpDeviceLoader(counting(), device, loader_prefetch_size=3, device_prefetch_size=2)
    )
    next(iterator)
    time.sleep(0.3)
    # 1 used, 2 on the device, 3 on the host, and one in the hands of each of the two threads.
    assert len(taken) <= 8
    iterator.close()
    wait_for_no_threads()


def test_refuses_a_device_that_is_not_its_own(device):
    loader = pl.ParallelLoader([torch.zeros(1)], [device])
    with pytest.raises(ValueError, match="not xla:9"):
        loader.per_device_loader(torch.device("xla", 9))
    loader.close()
