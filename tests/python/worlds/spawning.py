"""Ways to start processes and to fail, each in a process of its own. Prints the names of those that do not work."""

import multiprocessing
import os
import signal
import sys
import time
import traceback

import torch
import torch.distributed as dist

import torch_xla
import torch_xla.debug.profiler as xp
import torch_xla.distributed.xla_multiprocessing as xmp
from torch_xla import _XLAC
from torch_xla import runtime as xr
from torch_xla.core import xla_model as xm


def forks_without_pickling():
    queue = multiprocessing.get_context("fork").SimpleQueue()
    lock = multiprocessing.get_context("fork").Lock()
    unpicklable = lambda: 5  # noqa: E731

    def work(index, given):
        with lock:
            queue.put((index, xr.world_size(), given()))

    for _ in range(2):
        xmp.spawn(work, args=(unpicklable,), nprocs=3, start_method="fork")
        assert sorted(queue.get() for _ in range(3)) == [(i, 3, 5) for i in range(3)]
    assert xr.world_size() == 1
    assert not _XLAC._xla_runtime_is_initialized()


def ends_within_a_section():
    def work(index):
        generator = traced()
        next(generator)
        open_ones.append(generator)

    def traced():
        with xp.Trace("epoch"):
            xm.all_reduce(xm.REDUCE_SUM, [torch.ones(3, device="xla")])
            yield

    open_ones = []
    xmp.spawn(work, nprocs=2, start_method="fork")


def forks_after_computing():
    torch.set_num_threads(2)
    a = torch.randn(400, 400)
    product = a @ a
    (product.exp().sum() + torch.randn(10**6).sort()[0].sum()).item()
    on_device = torch.arange(6.0, device="xla")
    (on_device * 2).cpu()
    pending = on_device + 1

    def work(index):
        assert torch.allclose(a @ a, product, rtol=1e-3, atol=1e-3)
        assert on_device.sum().item() == 15
        assert (on_device + pending).tolist() == [1, 3, 5, 7, 9, 11]
        reduced = xm.all_reduce(xm.REDUCE_SUM, on_device + index)
        assert reduced.tolist() == [1, 3, 5, 7, 9, 11], reduced
        model = wrapped.to(torch_xla.device())
        loss = model(torch.ones(2, 4, device="xla")).sum()
        loss.backward()
        torch_xla.sync()
        assert torch.isfinite(loss.cpu())

    wrapped = xmp.MpModelWrapper(torch.nn.Linear(4, 3))
    xmp.spawn(work, nprocs=2, start_method="fork")
    # The parent goes on by itself.
    assert (on_device + pending).sum().item() == 36


def returns_a_context():
    context = xmp.spawn(lambda index: time.sleep(0.1), nprocs=2, join=False, start_method="fork")
    assert isinstance(context, torch.multiprocessing.ProcessContext)
    assert len(context.processes) == 2
    while not context.join():
        pass
    assert all(process.exitcode == 0 for process in context.processes)


def runs_one_in_place():
    seen = []
    assert (
        xmp.spawn(lambda index, value: seen.append((index, value, os.getpid())), (7,), nprocs=1)
        is None
    )
    assert seen == [(0, 7, os.getpid())]
    assert os.environ["XRT_HOST_WORLD_SIZE"] == "1"


def raises_what_a_process_raises():
    def work(index):
        if index == 1:
            raise KeyError("no such thing")
        time.sleep(60)

    start = time.monotonic()
    try:
        xmp.spawn(work, nprocs=3, start_method="fork")
    except torch.multiprocessing.ProcessRaisedException as error:
        assert "no such thing" in str(error), error
        assert error.error_index == 1
    else:
        raise AssertionError("no error")
    assert time.monotonic() - start < 30
    assert multiprocessing.active_children() == []


def names_the_signal_that_ended_a_process():
    def work(index):
        if index == 0:
            os.kill(os.getpid(), 9)
        time.sleep(60)

    try:
        xmp.spawn(work, nprocs=2, start_method="fork")
    except torch.multiprocessing.ProcessExitedException as error:
        assert "SIGKILL" in str(error), error
    else:
        raise AssertionError("no error")
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return
    raise AssertionError("a child is left")


def refuses_more_than_the_devices():
    os.environ["CPU_NUM_DEVICES"] = "2"
    for count in (0, 3):
        try:
            xmp.spawn(print, nprocs=count)
        except ValueError as error:
            assert str(count) in str(error)
        else:
            raise AssertionError("no error")


def names_who_does_not_come():
    os.environ["TORCH_XLA_COLLECTIVE_TIMEOUT"] = "1"

    def work(index):
        xm.rendezvous("first")
        if index == 0:
            try:
                xm.rendezvous("second")
            except RuntimeError as error:
                assert "rank 1 (last at 'first')" in str(error), error
            else:
                raise AssertionError("no error")
        else:
            time.sleep(3)

    xmp.spawn(work, nprocs=2, start_method="fork")


def names_who_goes_elsewhere():
    def work(index):
        try:
            xm.rendezvous("left" if index else "right")
        except RuntimeError as error:
            assert "'left'" in str(error) and "'right'" in str(error), error
        else:
            raise AssertionError("no error")

    xmp.spawn(work, nprocs=2, start_method="fork")


def lets_a_group_form_by_env():
    def work(index):
        dist.init_process_group("gloo", init_method="env://")
        value = torch.tensor([index + 1])
        dist.all_reduce(value)
        assert value.item() == 3
        dist.destroy_process_group()

    xmp.spawn(work, nprocs=2, start_method="fork")


def runs(case) -> bool:
    """Whether the case ends well, and within two minutes."""
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        status = 1
        try:
            case()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    cases = [value for name, value in list(globals().items()) if name in sys.argv[1:]]
    assert len(cases) == len(sys.argv) - 1
    print([case.__name__ for case in cases if not runs(case)])
