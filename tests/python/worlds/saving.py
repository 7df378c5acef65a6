"""Saving and loading in several processes; the first argument names the case, the second the folder."""

import os
import pathlib
import sys

import torch

import torch_xla
import torch_xla.utils.serialization as xser
from torch_xla import runtime as xr
from torch_xla.core import xla_model as xm

SAVES = {"xm": xm.save, "xser": xser.save}


def load(how, path):
    return torch.load(path, weights_only=True) if how == "xm" else xser.load(path)


def data(*more):
    """What each rank has: its own values, and work that is pending on the device."""
    rank = torch.full((3,), float(xr.global_ordinal()), device="xla")
    return {"rank": rank, "pending": rank * 2 + 1, "more": list(more)}


def only_the_master_writes(folder):
    for how, save in SAVES.items():
        path = folder / how
        save(data("text", 3), path)
        # All find the file, whole, once they have returned, and it is the first rank's.
        loaded = load(how, path)
        assert loaded["rank"].tolist() == [0, 0, 0] and loaded["pending"].tolist() == [1, 1, 1]
        assert loaded["more"] == ["text", 3]
        assert not loaded["rank"].is_xla
    xm.rendezvous("all have looked")
    if xr.global_ordinal() == 0:
        assert sorted(os.listdir(folder)) == ["xm", "xser", "xser.tensors"]


def each_writes_its_own(folder):
    for how, save in SAVES.items():
        for rank in (xr.global_ordinal(), xr.world_size() - 1 - xr.global_ordinal()):
            save(data(), folder / f"{how}{rank}", master_only=False)
            loaded = load(how, folder / f"{how}{rank}")
            assert loaded["rank"].tolist() == [xr.global_ordinal()] * 3
            # The next save replaces this file: nobody may still be reading it.
            xm.rendezvous("all have looked")


def all_may_write_one_file(folder):
    """The same data from all ranks to one path, which is a mistake that must not mix the files."""
    for how, save in SAVES.items():
        for version in range(5):
            save({"t": torch.full((1000,), float(version), device="xla")}, folder / how, False)
            loaded = load(how, folder / how)
            assert loaded["t"].tolist() == [float(version)] * 1000
            xm.rendezvous("all have looked")


def a_collective_is_pending(folder):
    """What the master saves needs all the ranks, whether they write or not."""
    for how, save in SAVES.items():
        reduced = xm.all_reduce(xm.REDUCE_SUM, data()["rank"] + 1)
        save({"reduced": reduced}, folder / how)
        expected = [sum(range(1, xr.world_size() + 1))] * 3
        assert load(how, folder / how)["reduced"].tolist() == expected == reduced.tolist()


def a_failure_is_raised_everywhere(folder):
    for save in SAVES.values():
        try:
            save(data(), folder / "missing" / "folder" / "x" if save is xm.save else "/dev/null/x")
        except OSError:
            assert xr.global_ordinal() == 0
        except RuntimeError as error:
            assert xr.global_ordinal() != 0
            assert "rank 0 could not save" in str(error), error
        else:
            raise AssertionError("saved where there is no folder")
        # The ranks are still together.
        save(data(), folder / "next")


def one_of_the_writers_fails(folder):
    good = folder / "good"
    for save in SAVES.values():
        last = xr.global_ordinal() == xr.world_size() - 1
        try:
            save(data(), "/dev/null/x" if last else good, master_only=False)
        except OSError:
            assert last
        except RuntimeError as error:
            assert not last
            assert f"rank {xr.world_size() - 1} could not save" in str(error), error
        else:
            raise AssertionError("nothing was raised")


def without_waiting(folder):
    xm.save(data(), folder / "x", sync=False)
    if xr.global_ordinal() == 0:
        assert load("xm", folder / "x")["rank"].tolist() == [0, 0, 0]
    xm.rendezvous("saved")
    assert load("xm", folder / "x")["pending"].tolist() == [1, 1, 1]


def training_goes_on(folder):
    """The saved tensors are the running ones still: the next steps' donations take nothing from the file."""
    for how, save in SAVES.items():
        model = torch.nn.Linear(4, 4).to("xla")
        torch.nn.init.ones_(model.weight)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for step in range(3):
            model(torch.ones(2, 4, device="xla")).sum().backward()
            xm.optimizer_step(optimizer)
            torch_xla.sync()
            expected = model.weight.detach().cpu()
            save(model.state_dict(), folder / f"{how}{step}")
            assert torch.equal(load(how, folder / f"{how}{step}")["weight"], expected)
            assert torch.equal(model.weight.detach().cpu(), expected)


def run(index, case, folder):
    case(pathlib.Path(folder))


if __name__ == "__main__":
    torch_xla.launch(run, (globals()[sys.argv[1]], sys.argv[2]), start_method="fork")
    print("passed")
