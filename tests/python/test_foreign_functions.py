"""Custom calls run functions of the user's in C++ (foreign_functions.cc), for which XLA's own header was used."""

import ctypes
import pathlib
import shutil
import subprocess

import pytest
import torch

import torch_xla
from torch_xla import _XLAC
from torch_xla.core import xla_model as xm
from torch_xla.experimental.stablehlo_custom_call import stablehlo_custom_call

pytestmark = pytest.mark.slow  # which a compiler is, too

SOURCE = pathlib.Path(__file__).parent / "foreign_functions.cc"
NAMES = ["scaled", "described", "streaming"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    import jax

    folder = tmp_path_factory.mktemp("foreign")
    path, compiled = folder / "foreign_functions.so", str(folder / "foreign_functions.o")
    options = ["-std=c++17", "-c", "-fPIC", "-w", f"-isystem{jax.ffi.include_dir()}"]
    cached = ["ccache"] if shutil.which("ccache") else []
    subprocess.run([*cached, "c++", *options, str(SOURCE), "-o", compiled], check=True)
    subprocess.run(["c++", "-shared", compiled, "-o", str(path)], check=True)
    functions = ctypes.CDLL(str(path))
    capsules = {name: jax.ffi.pycapsule(getattr(functions, name)) for name in NAMES}
    for name, capsule in capsules.items():
        _XLAC._xla_register_custom_call_target(f"test.{name}", capsule, "cpu")
    return capsules


def scaled(x, **attributes):
    attributes = {
        "scale": 2.0,
        "shift": 1,
        "negate": True,
        "mode": "plain",
        "weights": [1, 10],
    } | attributes
    return stablehlo_custom_call(
        [x],
        "test.scaled",
        [x.shape, x.shape],
        [torch.float32, torch.bool],
        backend_config=attributes,
        api_version=4,
    )


def call(x, target, *types, sizes=(2,)):
    return stablehlo_custom_call([x], target, [sizes] * len(types), types, api_version=4)


@pytest.mark.usefixtures("library")
def test_attributes_and_several_results(device):
    x = torch.tensor([[1.0, -2.0], [3.0, 0.5]], device=device)
    y, above = scaled(x * 2)
    assert (y + 1).tolist() == [
        [-2.0, 82.0],
        [-10.0, -18.0],
    ]  # before and after it is computed, too
    assert above.tolist() == [[False, True], [False, False]]
    # Other attributes are another program.
    other, _ = scaled(x, negate=False, scale=1.0, shift=-4, weights=[3])
    assert other.tolist() == [[-1.0, -10.0], [5.0, -2.5]]


@pytest.mark.usefixtures("library")
def test_in_a_compiled_function(device):
    function = torch_xla.compile(lambda x: scaled(x.relu())[0].sum())
    for i in range(3):
        assert function(torch.full((2,), float(i), device=device)).item() == -22.0 * i + 2


@pytest.mark.usefixtures("library")
def test_errors_are_told_once(device):
    x = torch.ones(2, device=device)
    torch_xla.sync()  # what a program computes fails together

    def check_refused(make, message):
        result = make()
        with pytest.raises(RuntimeError, match=message):
            result.cpu()
        assert scaled(x)[0].tolist() == [-1.0, -19.0]  # the next call is as ever
        torch_xla.sync(wait=True)
        xm.wait_device_ops()

    check_refused(lambda: scaled(x, mode="refuse")[0], "refused, as asked")
    check_refused(
        lambda: call(x, "test.scaled", torch.float32, torch.bool)[0], "Wrong number of attributes"
    )
    check_refused(lambda: call(x, "test.streaming", torch.float32), "has no streams")


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        (torch.bool, 1),
        (torch.int8, 2),
        (torch.int16, 3),
        (torch.int32, 4),
        (torch.int64, 5),
        (torch.uint8, 6),
        (torch.float16, 10),
        (torch.float32, 11),
        (torch.float64, 12),
        (torch.complex64, 15),
        (torch.bfloat16, 16),
        (torch.complex128, 18),
    ],
)
def test_any_type_and_sizes(dtype, number, device):
    x = torch.zeros(3, 0, 5, dtype=dtype, device=device)
    described = call(x, "test.described", torch.int64, sizes=(4,))
    assert described.tolist() == [number, 3, 0, 5]


def test_registration(library, device):
    _XLAC._xla_register_custom_call_target("test.scaled", library["scaled"], "cpu")  # once more
    with pytest.raises(RuntimeError, match="has another handler"):
        _XLAC._xla_register_custom_call_target("test.scaled", library["described"], "cpu")
    with pytest.raises(TypeError):
        _XLAC._xla_register_custom_call_target("test.number", 1, "cpu")
    x = torch.ones(2, device=device)
    old = stablehlo_custom_call([x], "test.described", [(2,)], [torch.int64])
    with pytest.raises(NotImplementedError, match="by api_version 1, but by 4 alone"):
        old.cpu()
    del old  # each step would try again
    unknown = call(x, "test.unknown", torch.float32)
    with pytest.raises(NotImplementedError, match=r"test\.unknown"):
        unknown.cpu()
    del unknown


def test_configuration_goes_with_the_version(device):
    x = torch.ones(4, device=device)
    for options in (
        {"backend_config": "text", "api_version": 4},
        {"frontend_attributes": {"a": "b"}, "api_version": 4},
        {"backend_config": {"a": 1}},
    ):
        with pytest.raises(ValueError, match="api_version 4"):
            stablehlo_custom_call([x], "test.any", [(4,)], [x.dtype], **options)
