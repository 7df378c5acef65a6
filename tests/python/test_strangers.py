"""What strangers can do to a world: nothing listens on one machine, and what they put into a store is refused."""

import datetime
import io
import json
import multiprocessing
import os
import pathlib
import pickle
import time
from concurrent import futures

import pytest
import torch
import torch.distributed as dist

from torch_xla._internal import job_secret, private_folder, world
from torch_xla._internal.authenticated_store import AuthenticatedStore, ForeignValueError
from torch_xla._internal.folder_store import FolderStore
from torch_xla._internal.private_folder import PrivateFolder
from torch_xla.core import xla_model as xm

SECRET = "a secret of more than 32 characters"
SCRIPT = pathlib.Path(__file__).parent / "worlds" / "listening.py"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = PrivateFolder()
    yield made
    made.close()


# --- A launch on one machine ---


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_one_machine_listens_nowhere(program, tmp_path, start_method):
    result = program.run(
        str(SCRIPT), start_method, CPU_NUM_DEVICES="2", TMPDIR=str(tmp_path), timeout=200
    )
    reports = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(reports) == 2
    for report in reports:
        assert report["listening"] == []
        # A process group's gloo, on which torch insists, is for this machine alone.
        assert report["of_gloo"] and all(
            address.startswith("0100007F:") for address in report["of_gloo"]
        )
        assert report["command_lines_with_the_secret"] == []
        assert report["mode"] == "0700"
        assert report["gathered"] == [0, 1]
    assert not list(tmp_path.glob(f"{private_folder.PREFIX}*"))


# --- What strangers put into a store ---


@pytest.fixture
def rank_0(folder, monkeypatch):
    """This process is rank 0 of 2."""
    for name in (job_secret.SECRET_VARIABLE, job_secret.FILE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    variables = {"RANK": "0", "WORLD_SIZE": "2", world.STORE_VARIABLE: folder.path}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(world, "_connection", world._Connection())
    monkeypatch.setenv(world.TIMEOUT_VARIABLE, "20")
    return folder


def test_threads_connect_once(rank_0, monkeypatch):
    connect, connected = world._connect, []

    def slowly(place):
        connected.append(place)
        time.sleep(0.1)
        return connect(place)

    monkeypatch.setattr(world, "_connect", slowly)
    with futures.ThreadPoolExecutor(4) as threads:
        stores = [thread.result() for thread in [threads.submit(world.store) for _ in range(4)]]
    assert len(connected) == 1 and all(store is stores[0] for store in stores)


class Touch:
    """Unpickling it makes a file."""

    def __init__(self, file: pathlib.Path) -> None:
        self.file = file

    def __reduce__(self):
        return (pathlib.Path.touch, (self.file,))


KEY = "torch_xla/0/exchange/0,1/1/1"


def message(tag: str, value: object) -> bytes:
    """What rank 1 would say in `mesh_reduce`, without a secret."""
    stream = io.BytesIO()
    torch.save(value, stream)
    one_piece = (1).to_bytes(4, "big")
    return one_piece + len(tag).to_bytes(4, "big") + tag.encode() + stream.getvalue()


def test_a_strangers_value_is_refused(rank_0, monkeypatch, tmp_path):
    monkeypatch.setenv(job_secret.SECRET_VARIABLE, SECRET)
    touched = tmp_path / "touched"
    FolderStore(rank_0.path).set(KEY, message("mean", Touch(touched)))
    with pytest.raises(RuntimeError, match=r"refuses what is there from rank 1.*does not know"):
        xm.mesh_reduce("mean", 1, sum)
    assert not touched.exists()


def test_a_value_of_another_secret_is_refused(rank_0, monkeypatch, tmp_path):
    monkeypatch.setenv(job_secret.SECRET_VARIABLE, SECRET)
    touched = tmp_path / "touched"
    stranger = AuthenticatedStore(FolderStore(rank_0.path), SECRET.upper().encode(), 1)
    stranger.set(KEY, message("mean", Touch(touched)))
    with pytest.raises(RuntimeError, match=r"from rank 1.*it is of rank 1, but"):
        xm.mesh_reduce("mean", 1, sum)
    assert not touched.exists()


def test_objects_travel_with_the_secret(rank_0, monkeypatch):
    monkeypatch.setenv(job_secret.SECRET_VARIABLE, SECRET)
    other = AuthenticatedStore(FolderStore(rank_0.path), SECRET.encode(), 1)
    other.set(KEY, message("mean", datetime.timedelta(seconds=2)))
    gathered = xm.mesh_reduce("mean", datetime.timedelta(seconds=1), list)
    assert [each.seconds for each in gathered] == [1, 2]


def test_without_a_secret_nothing_is_run(rank_0, tmp_path):
    touched = tmp_path / "touched"
    FolderStore(rank_0.path).set(KEY, message("mean", Touch(touched)))
    with pytest.raises(RuntimeError, match=r"data of rank 1.*Set TORCH_XLA_JOB_SECRET"):
        xm.mesh_reduce("mean", 1, sum)
    assert not touched.exists()


def test_a_secret_that_is_set_late_makes_nothing_trusted(rank_0, monkeypatch, tmp_path):
    touched = tmp_path / "touched"
    world.store()
    monkeypatch.setenv(job_secret.SECRET_VARIABLE, SECRET)
    FolderStore(rank_0.path).set(KEY, message("mean", Touch(touched)))
    with pytest.raises(RuntimeError, match="data of rank 1"):
        xm.mesh_reduce("mean", 1, sum)
    assert not touched.exists()


def test_data_travels_without_a_secret(rank_0):
    data = {
        "tensor": torch.arange(3.0),
        "list": [1, 2.5, True, None, "text", b"bytes", 10**30],
        "tuple": (1 + 2j, {3, 4}),
    }
    FolderStore(rank_0.path).set(KEY, message("mean", data))
    first, second = xm.mesh_reduce("mean", {**data, "tensor": torch.ones(3, device="xla")}, list)
    assert torch.equal(first["tensor"], torch.ones(3))
    assert torch.equal(second["tensor"], data["tensor"])
    assert second["list"] == data["list"] and second["tuple"] == data["tuple"]


MEETS = """
import torch, torch_xla
from torch_xla.core import xla_model as xm
xm.all_reduce(xm.REDUCE_SUM, torch.ones(2, device="xla")).tolist()
"""


def test_the_runtime_refuses_what_strangers_have_set(program, folder):
    """It finds the other ranks over the same store."""
    processes = [
        program.start(
            *("-c", MEETS),
            pipes=("stderr",),
            RANK=str(rank),
            WORLD_SIZE="2",
            TORCH_XLA_COLLECTIVE_TIMEOUT="20",
            **{world.STORE_VARIABLE: folder.path, job_secret.SECRET_VARIABLE: secret},
        )
        for rank, secret in enumerate((SECRET, SECRET.upper()))
    ]
    try:
        errors = [process.communicate(timeout=100)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    refused = [error for error in errors if "does not know the job's secret" in error]
    assert refused and all("cannot be taken" in error for error in refused), errors


@pytest.mark.parametrize(
    "garbage", [b"", b"\xff" * 40, b"\0\0\0\1\0\0\0\4\xff\xff\xff\xff", b"\0\0\0\2\0\0\0\3end"]
)
def test_garbage_is_an_error_that_names_the_rank(rank_0, garbage):
    FolderStore(rank_0.path).set(KEY, garbage)
    with pytest.raises(RuntimeError, match="cannot read what is there from rank 1"):
        xm.rendezvous("end")


def test_an_error_of_a_process_is_left_where_nobody_else_can_write(folder):
    """The launcher unpickles it."""
    from torch_xla.distributed import xla_multiprocessing as xmp

    context = xmp.spawn(print, nprocs=2, join=False, start_method="fork")
    files = [pathlib.Path(file) for file in context.error_files]
    assert {file.parent.stat().st_mode & 0o777 for file in files} == {0o700}
    while not context.join():
        pass
    assert not any(file.parent.exists() for file in files)


# --- The stores ---


@pytest.mark.parametrize("is_authenticated", [False, True])
def test_stores_do_as_torchs_do(folder, is_authenticated):
    ours: dist.Store = FolderStore(folder.path)
    if is_authenticated:
        ours = AuthenticatedStore(ours, SECRET.encode(), 3)
    second = datetime.timedelta(seconds=0.05)
    for store in (dist.HashStore(), ours):
        prefixed = dist.PrefixStore("some/prefix", store)
        prefixed.set("key", "value")
        assert prefixed.get("key") == b"value" and prefixed.check(["key"])
        prefixed.set("key", b"\0\xff" * 3000)
        assert prefixed.get("key") == b"\0\xff" * 3000
        assert [prefixed.add("number", 2), prefixed.add("number", -5)] == [2, -3]
        prefixed.wait(["key", "number"])
        assert not prefixed.check(["key", "other"])
        with pytest.raises(dist.DistStoreError):
            prefixed.wait(["other"], second)
        assert store.compare_set("c", "not there", "new") == b"not there"
        assert store.compare_set("c", "", "new") == b"new"
        assert store.compare_set("c", "other", "newer") == b"new"
        assert store.compare_set("c", "new", "newer") == b"newer" == store.get("c")
        assert store.num_keys() == 3
        assert prefixed.delete_key("key") and not prefixed.delete_key("key")
        store.set_timeout(second)
        with pytest.raises(dist.DistStoreError):
            prefixed.get("key")
        clone = prefixed.clone()
        clone.set("cloned", "1")
        assert prefixed.get("cloned") == b"1"


def _add(path: str, count: int) -> None:
    store = FolderStore(path)
    for _ in range(count):
        store.add("number", 1)


def test_processes_add_up(folder):
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_add, args=(folder.path, 200)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert FolderStore(folder.path).add("number", 0) == 600


def test_values_are_bound_to_their_keys_and_ranks(folder):
    plain = FolderStore(folder.path)
    store = AuthenticatedStore(plain, SECRET.encode(), 1)
    store.set("a", "value")
    kept = plain.get("a")
    plain.set("b", kept)
    plain.set("a", kept[:32] + (2).to_bytes(4, "big") + kept[36:])
    for key, claimed in (("b", "rank 1"), ("a", "rank 2")):
        with pytest.raises(ForeignValueError, match=f"of '{key}' .* of {claimed}"):
            store.get(key)
    plain.set("a", b"short")
    with pytest.raises(ForeignValueError, match="of nobody"):
        store.get("a")


# --- The folder ---


def test_folders_of_killed_processes_are_removed(folder, tmp_path):
    abandoned = tmp_path / f"{private_folder.PREFIX}abandoned"
    abandoned.mkdir(mode=0o700)
    (abandoned / "file").touch()
    other = tmp_path / "something-else"
    other.mkdir()
    held = tmp_path / f"{private_folder.PREFIX}held"
    held.mkdir(mode=0o700)
    link = tmp_path / f"{private_folder.PREFIX}link"
    link.symlink_to(other)
    lock = private_folder.hold(str(held))
    try:
        PrivateFolder().close()
        assert {path.name for path in tmp_path.iterdir()} == {
            *(path.name for path in (other, held, link)),
            pathlib.Path(folder.path).name,
        }
    finally:
        os.close(lock)


def test_a_process_that_comes_after_the_end_is_told(folder):
    folder.close()
    with pytest.raises(RuntimeError, match="has the launcher ended"):
        FolderStore(folder.path)


def test_checkpoints_of_processes_run_nothing(tmp_path):
    from torch_xla.distributed.fsdp import consolidate_sharded_ckpts

    touched = tmp_path / "touched"
    torch.save({"model": Touch(touched), "shard_metadata": {}}, tmp_path / "a_rank-0.pth")
    command = ["--ckpt_prefix", str(tmp_path / "a"), "--ckpt_suffix", "_rank-*.pth"]
    with pytest.raises(pickle.UnpicklingError):
        consolidate_sharded_ckpts.main(command)
    assert not touched.exists()
    with pytest.raises(KeyError):
        consolidate_sharded_ckpts.main([*command, "--load_objects"])
    assert touched.exists()
