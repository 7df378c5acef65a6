"""What this machine says about its TPU chips.

`PJRT_DEVICE=TPU TORCH_XLA_SIMULATE_TPU=8` lets a machine without any play one with 8: programs and libraries that look for TPUs find
them, and the CPU engine computes.
"""

import glob
import importlib.util
import math
import os
import pathlib
import re
import urllib.request

_GOOGLE_PCI_VENDOR_ID = "0x1ae0"

# The identifiers of the chips on the PCI bus, and the generations that they belong to.
_GENERATION_OF_PCI_DEVICE = {
    "0x0027": 3,  # second and third generation, told apart by their subsystem
    "0x005e": 4,
    "0x0062": 5,
    "0x0063": 5,
    "0x006f": 6,
}
_TPU_PCI_DEVICE_IDS = list(_GENERATION_OF_PCI_DEVICE)
# What a virtual machine's host says of it, to it alone.
_METADATA_URL = "http://metadata.google.internal/computeMetadata/v1/instance/attributes"
_METADATA_SECONDS = 5.0
# Where the processes of a machine listen for those of others.
_FIRST_PROCESS_PORT = 8476
# How the chips of a machine that is alone are connected.
_BOUNDS_OF_CHIPS = {4: "2,2,1", 8: "2,4,1"}
_CORES_OF_GENERATION = {2: 2, 3: 2}


def _chips() -> list[str]:
    """The PCI device identifiers of the chips of this machine."""
    found = []
    for path in glob.glob("/sys/bus/pci/devices/*/vendor"):
        try:
            vendor = pathlib.Path(path).read_text().strip()
            identifier = pathlib.Path(path).with_name("device").read_text().strip()
        except OSError:
            continue
        if vendor == _GOOGLE_PCI_VENDOR_ID and identifier in _TPU_PCI_DEVICE_IDS:
            found.append(identifier)
    return found


def simulated_device_count() -> int:
    """How many devices the CPU engine plays (TORCH_XLA_SIMULATE_TPU); 0 unless PJRT_DEVICE=TPU asks for TPUs."""
    if os.environ.get("PJRT_DEVICE", "").upper() != "TPU":
        return 0
    text = os.environ.get("TORCH_XLA_SIMULATE_TPU", "0")
    if not text.isdigit():
        raise ValueError(f"TORCH_XLA_SIMULATE_TPU={text} is not a number of devices.")
    return int(text)


def num_available_chips() -> int:
    """The number of TPU chips of this machine."""
    return simulated_device_count() or len(_chips())


def num_available_devices() -> int:
    """The number of TPU devices that programs on this machine can use; no runtime is started to find out."""
    simulated = simulated_device_count()
    if simulated:
        return simulated
    chips = num_available_chips()
    return chips * _CORES_OF_GENERATION.get(version(), 1) if chips else 0


def num_local_processes() -> int:
    """How many processes of this machine drive its chips: one for each, or as many as TPU_PROCESS_BOUNDS says, if fewer."""
    chips = num_available_chips()
    return min(chips, process_bounds_size() or chips)


def process_bounds_size() -> int | None:
    """The number of processes of the slice, where the environment says how they lie (TPU_PROCESS_BOUNDS)."""
    bounds = os.environ.get("TPU_PROCESS_BOUNDS") or os.environ.get("TPU_HOST_BOUNDS")
    return math.prod(_bounds(bounds)) if bounds else None


def version() -> int:
    """The generation of the slice's chips, or else of this machine's; raises EnvironmentError when there is none."""
    generation = re.match(r"v(\d+)", get_tpu_env().get("ACCELERATOR_TYPE", ""))
    if generation:
        return int(generation[1])
    if not _chips():
        raise OSError("This machine has no TPU.")
    return _GENERATION_OF_PCI_DEVICE[_chips()[0]]


def _get_metadata(key: str) -> str:
    """What the host of this virtual machine says of it; EnvironmentError where there are no chips, or no such host."""
    if not _chips():
        raise OSError("This machine has no TPU, so nobody is asked about it.")
    request = urllib.request.Request(
        f"{_METADATA_URL}/{key}", headers={"Metadata-Flavor": "Google"}
    )
    with urllib.request.urlopen(request, timeout=_METADATA_SECONDS) as response:
        return response.read().decode()


def _metadata(key: str) -> str:
    """The same, and nothing where it is not to be had, or not to be asked for (TPU_SKIP_MDS_QUERY)."""
    if os.environ.get("TPU_SKIP_MDS_QUERY"):
        return ""
    try:
        return _get_metadata(key)
    except OSError:
        return ""


# What describes a slice, and the variables that say it, the first of them that is there.
_VARIABLES = {
    "ACCELERATOR_TYPE": ("ACCELERATOR_TYPE", "TPU_ACCELERATOR_TYPE"),
    "TYPE": ("TYPE",),
    "TPU_CHIPS_PER_PROCESS_BOUNDS": ("TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_CHIPS_PER_HOST_BOUNDS"),
    "TPU_PROCESS_BOUNDS": ("TPU_PROCESS_BOUNDS", "TPU_HOST_BOUNDS"),
    "WORKER_ID": ("WORKER_ID", "CLOUD_TPU_TASK_ID", "TPU_WORKER_ID"),
}


def get_tpu_env() -> dict[str, str]:
    """The description of the TPU slice: what the machine's host says, or else the environment variables."""
    told = dict(re.findall(r"^\s*(\w+): '?(.*?)'?\s*$", _metadata("tpu-env"), re.MULTILINE))
    if told:
        return told
    found = {}
    for name, variables in _VARIABLES.items():
        values = [os.environ[variable] for variable in variables if variable in os.environ]
        if values:
            found[name] = values[0]
    return found


def get_tpu_type() -> str:
    """The type of the slice, as `v4-8`; raises EnvironmentError when the environment does not say."""
    environment = get_tpu_env()
    for name in ("ACCELERATOR_TYPE", "TYPE"):
        if name in environment:
            return environment[name]
    raise OSError("The type of the TPU is not known: ACCELERATOR_TYPE is not set.")


def configure_topology(
    local_rank: int, local_world_size: int, base_port: int = _FIRST_PROCESS_PORT
) -> None:
    """Tells the TPU's runtime, through the environment, which chip this process drives, and where the others are.

    Each process drives one chip. What is in the environment already stays. Where the environment does not describe the
    slice (TPU_PROCESS_BOUNDS, TPU_CHIPS_PER_PROCESS_BOUNDS), the processes of this machine are taken for all of it.
    """
    slice_description = get_tpu_env()
    machines = _bounds(slice_description.get("TPU_PROCESS_BOUNDS", "1,1,1"))
    default_chips = _BOUNDS_OF_CHIPS.get(local_world_size, f"{local_world_size},1,1")
    chips = _bounds(slice_description.get("TPU_CHIPS_PER_PROCESS_BOUNDS", default_chips))
    ports = range(base_port, base_port + local_world_size)
    bounds = [machine * chip for machine, chip in zip(machines, chips, strict=True)]
    rank = int(slice_description.get("WORKER_ID", 0)) * local_world_size + local_rank
    os.environ["TPU_PROCESS_BOUNDS"] = ",".join(map(str, bounds))
    os.environ["TPU_CHIPS_PER_PROCESS_BOUNDS"] = "1,1,1"
    os.environ["CLOUD_TPU_TASK_ID"] = str(rank)
    for name, value in {
        "TPU_VISIBLE_CHIPS": str(local_rank),
        "TPU_PROCESS_PORT": str(ports[local_rank]),
        "TPU_PROCESS_ADDRESSES": ",".join(
            f"{host}:{port}" for host in get_worker_ips() for port in ports
        ),
    }.items():
        os.environ.setdefault(name, value)


def _bounds(text: str) -> list[int]:
    return [int(size) for size in text.split(",")]


def get_worker_ips() -> list[str]:
    """The addresses of the slice's machines, in the order of their ranks; `localhost` where it is one."""
    named = [name for name in os.environ.get("TPU_WORKER_HOSTNAMES", "").split(",") if name]
    told = _metadata("worker-network-endpoints").strip()
    # name:port:address for each
    addresses = named or [machine.split(":")[2] for machine in told.split(",") if machine]
    return addresses if len(addresses) > 1 else named or ["localhost"]


def num_tpu_workers() -> int:
    """The number of machines of the slice."""
    return len(get_worker_ips())


def task_id() -> int | None:
    """The rank of this process in the slice, if the environment names it."""
    for name in ("CLOUD_TPU_TASK_ID", "TPU_WORKER_ID"):
        if name in os.environ:
            return int(os.environ[name])
    return None


def worker_id() -> int:
    """The rank of this machine in the slice; 0 where nobody says."""
    return int(get_tpu_env().get("WORKER_ID", 0))


def library_path() -> str | None:
    """Where `libtpu.so` is: TPU_LIBRARY_PATH, or in the package `libtpu`."""
    for name in ("PTXLA_TPU_LIBRARY_PATH", "TPU_LIBRARY_PATH"):
        if os.environ.get(name):
            return os.environ[name]
    specification = importlib.util.find_spec("libtpu")
    if specification is None or not specification.submodule_search_locations:
        return None
    file = pathlib.Path(specification.submodule_search_locations[0]) / "libtpu.so"
    return str(file) if file.exists() else None
