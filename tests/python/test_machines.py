"""What the environment says about the machines of a world, and what each of their processes is told."""

import os

import pytest

from torch_xla._internal import machines, tpu
from torch_xla.experimental import plugins


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """What the tests and the code set is gone afterwards."""
    before = dict(os.environ)
    for name in list(os.environ):
        if name.startswith(("TPU_", "PET_", "CLOUD_TPU", "MASTER_")):
            monkeypatch.delenv(name)
    yield
    os.environ.clear()
    os.environ.update(before)


def test_one_machine():
    assert machines.machines() is None
    # One host of a TPU is no slice of several, and other devices are no TPUs.
    os.environ.update(PJRT_DEVICE="TPU", TPU_WORKER_HOSTNAMES="localhost")
    assert machines.machines() is None
    os.environ.update(PJRT_DEVICE="CPU", TPU_WORKER_HOSTNAMES="a,b")
    assert machines.machines() is None


def test_machines_of_a_launcher():
    os.environ.update(
        PET_NNODES="3", PET_NODE_RANK="2", PET_MASTER_ADDR="first", PET_MASTER_PORT="77"
    )
    assert machines.machines() == machines.Machines(3, 2, "first", 77)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PET_NNODES": "2", "PET_NODE_RANK": "0"}, "PET_MASTER_ADDR"),
        ({"PET_NNODES": "2", "PET_NODE_RANK": "2", "PET_MASTER_ADDR": "a"}, "less than 2"),
        ({"PET_NNODES": "1:2"}, "PET_NNODES=1:2 is not a number"),
    ],
)
def test_what_is_missing_or_wrong(variables, message):
    os.environ.update(variables)
    with pytest.raises(ValueError, match=message):
        machines.machines()


def test_machines_of_a_tpu_slice():
    os.environ.update(PJRT_DEVICE="TPU", TPU_WORKER_HOSTNAMES="a,b", TPU_WORKER_ID="1")
    assert machines.machines() == machines.Machines(2, 1, "a", machines.DEFAULT_MASTER_PORT)


def test_each_process_drives_one_chip_of_a_slice():
    os.environ.update(
        TPU_PROCESS_BOUNDS="1,1,2",
        TPU_CHIPS_PER_PROCESS_BOUNDS="2,2,1",
        TPU_WORKER_HOSTNAMES="a,b",
        TPU_WORKER_ID="1",
    )
    tpu.configure_topology(2, 4)
    assert os.environ["TPU_PROCESS_BOUNDS"] == "2,2,2"
    assert os.environ["TPU_CHIPS_PER_PROCESS_BOUNDS"] == "1,1,1"
    assert os.environ["CLOUD_TPU_TASK_ID"] == "6"
    assert (os.environ["TPU_VISIBLE_CHIPS"], os.environ["TPU_PROCESS_PORT"]) == ("2", "8478")
    addresses = os.environ["TPU_PROCESS_ADDRESSES"].split(",")
    assert addresses == [f"{host}:{8476 + i}" for host in "ab" for i in range(4)]


def test_a_slice_as_its_host_describes_it(monkeypatch):
    told = {
        "tpu-env": "ACCELERATOR_TYPE: 'v5litepod-16'\nTPU_PROCESS_BOUNDS: '2,2,1'\nWORKER_ID: '2'\n",
        "worker-network-endpoints": "w-0:1:10.0.0.1,w-1:1:10.0.0.2",
    }
    monkeypatch.setattr(tpu, "_get_metadata", told.__getitem__)
    assert tpu.version() == 5 and tpu.worker_id() == 2
    assert tpu.get_tpu_env()["TPU_PROCESS_BOUNDS"] == "2,2,1"
    assert tpu.get_worker_ips() == ["10.0.0.1", "10.0.0.2"]
    # Whoever asks for it hears the environment alone.
    os.environ.update(TPU_SKIP_MDS_QUERY="1", TPU_ACCELERATOR_TYPE="v4-16", TPU_HOST_BOUNDS="1,1,2")
    assert tpu.get_tpu_env() == {"ACCELERATOR_TYPE": "v4-16", "TPU_PROCESS_BOUNDS": "1,1,2"}
    assert (tpu.version(), tpu.process_bounds_size(), tpu.get_worker_ips()) == (4, 2, ["localhost"])


def test_each_process_drives_one_gpu():
    assert plugins.CudaPlugin().client_create_options() == {}
    os.environ.update(LOCAL_RANK="1", LOCAL_WORLD_SIZE="2")
    assert plugins.CudaPlugin().client_create_options() == {"visible_devices": [1]}
    os.environ["CUDA_VISIBLE_DEVICES"] = "0,3,5"
    assert plugins.CudaPlugin().physical_chip_count() == 3
    os.environ["GPU_NUM_DEVICES"] = "2"
    assert plugins.CudaPlugin().physical_chip_count() == 2
