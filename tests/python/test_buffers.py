"""The memory behind tensors: placeholders, handles, and donation by wish."""

import threading

import pytest
import torch

import torch_xla
import torch_xla.core.xla_builder as xb
import torch_xla.debug.metrics as met
import torch_xla.experimental.dynamo_set_buffer_donor
from torch_xla import _XLAC
from torch_xla._errors import MissingValueError
from torch_xla.experimental import callback
from torch_xla.utils import dlpack
from torch_xla.utils.buffer_donor_context import alias_with_buffer_donor_config


def uploaded(*sizes):
    return torch.randn(*sizes).to("xla")


def test_placeholders_have_shapes_and_no_values():
    p = xb.create_placeholder_tensor((2, 3), torch.bfloat16)
    assert (p.shape, p.dtype, p.device) == ((2, 3), torch.bfloat16, torch_xla.device())
    assert _XLAC._is_placecholder(p) and not _XLAC._is_placecholder(uploaded(2))
    q = xb.create_placeholder_tensor((3, 4), torch.bfloat16)
    first, second = _XLAC._get_tensors_handle([p, q])
    assert first != second
    y = (p.sin() @ q) @ q.T
    assert not _XLAC._is_placecholder(y)
    text = _XLAC._get_xla_tensors_text([y])
    assert text.count("xla::device_data()") == 2
    assert text.count("bf16[3,4]{1,0} xla::device_data()") == 1
    for tensor in (p, y):
        with pytest.raises(MissingValueError, match="is a placeholder"):
            tensor.cpu()
    del y


def test_what_is_computed_is_known():
    x = uploaded(4)
    y = x + 1
    assert _XLAC._check_tensor_need_materialization([x, y, torch.ones(2)]) == [False, True, False]
    with pytest.raises(RuntimeError, match="sync"):
        _XLAC._get_tensors_handle([y])
    with pytest.raises(RuntimeError, match="sync"):
        _XLAC._unsafe_buffer_pointer(y)
    torch_xla.sync()
    assert _XLAC._check_tensor_need_materialization([y]) == [False]
    assert _XLAC._unsafe_buffer_pointer(y) != _XLAC._unsafe_buffer_pointer(x)


def test_the_leaves_of_recorded_work_are_the_inputs():
    x, y = uploaded(4), uploaded(4)
    ids, leaves = _XLAC._get_tensors_xla_device_data_node([x * y], [x])
    assert sorted(ids) == sorted(map(_XLAC._xla_get_tensor_id, [x, y])) and len(leaves) == 2
    assert leaves[ids.index(_XLAC._xla_get_tensor_id(x))] is x
    torch.testing.assert_close(
        sorted(leaf.sum().item() for leaf in leaves), sorted([x.sum().item(), y.sum().item()])
    )


def test_what_people_read_is_numbered_from_the_last_operand_on():
    x, y = uploaded(2, 3), uploaded(3, 4)
    product = x @ y
    lines = _XLAC._get_xla_tensors_text([product * 2]).splitlines()
    kinds = ["prim::Constant", "f32[3,4]", "f32[2,3]", "aten::mm(%2, %1)", "aten::mul(%3, %0)"]
    assert all(kind in line for kind, line in zip(kinds, lines[1:-1], strict=False))
    assert "(p0.1: f32[3,4], p1.2: f32[2,3])" in _XLAC._get_xla_tensors_hlo([product])
    ids, _ = _XLAC._get_tensors_xla_device_data_node([product])
    assert ids == [_XLAC._xla_get_tensor_id(y), _XLAC._xla_get_tensor_id(x)]


@pytest.mark.usefixtures("programs_only")
def test_a_wish_gives_the_memory_to_the_next_program():
    x, y = uploaded(4, 2), uploaded(4, 2)
    expected = (x + y).cpu()
    assert not _XLAC._get_buffer_donation(x)
    before = met.counter_value("XlaSetBufferDonation") or 0
    assert _XLAC._set_buffer_donation(x, True) and _XLAC._get_buffer_donation(x)
    assert met.counter_value("XlaSetBufferDonation") == before + 1
    assert not _XLAC._set_buffer_donation(x + y, True)  # recorded work has no memory to give
    assert met.counter_value("XlaSetBufferDonation") == before + 1
    torch_xla.sync()
    assert not _XLAC._is_placecholder(x)  # nothing has taken it
    total = x + y
    address = _XLAC._unsafe_buffer_pointer(x)
    torch_xla.sync(wait=True)
    assert _XLAC._is_placecholder(x) and not _XLAC._is_placecholder(y)
    assert _XLAC._unsafe_buffer_pointer(total) == address
    assert "Data Handle: Deleted" in _XLAC._get_xla_tensor_debug_info(x)
    assert "Data Handle: Deleted" not in _XLAC._get_xla_tensor_debug_info(y)
    torch.testing.assert_close(total.cpu(), expected)
    with pytest.raises(RuntimeError, match="is deleted"):
        _XLAC._get_tensors_handle([x])
    with pytest.raises(RuntimeError, match="donated"):
        x.cpu()


def test_a_wish_for_memory_that_no_result_can_take_frees_it():
    x = uploaded(8)
    expected = x.cpu().sum()
    torch.ops.xla.dynamo_set_buffer_donor_(x, True)
    total = x.sum()
    torch_xla.sync(wait=True)
    assert _XLAC._is_placecholder(x)
    torch.testing.assert_close(total.cpu(), expected)


@pytest.mark.usefixtures("programs_only")
def test_no_wish_gives_away_memory_that_another_library_reads():
    x = uploaded(1 << 16)
    expected = x.cpu()
    shared = torch.from_dlpack(dlpack.to_dlpack(x))
    _XLAC._set_buffer_donation(x, True)
    y = x + 1
    torch_xla.sync(wait=True)
    assert not _XLAC._is_placecholder(x)
    torch.testing.assert_close(shared, expected)
    del shared
    z = x + 2
    torch_xla.sync(wait=True)
    assert _XLAC._is_placecholder(x)
    torch.testing.assert_close(torch.stack([y, z]).cpu(), torch.stack([expected + 1, expected + 2]))


def test_a_graph_that_heeds_wishes_is_another_one():
    x = uploaded(8)
    y = x + 1
    plain = _XLAC._get_graph_hash([y])
    with alias_with_buffer_donor_config():
        assert _XLAC._get_graph_hash([y]) == plain
        _XLAC._set_buffer_donation(x, True)
        assert _XLAC._get_graph_hash([y]) != plain
    assert _XLAC._get_graph_hash([y]) == plain


def test_a_wish_can_be_taken_back():
    x = uploaded(8)
    _XLAC._set_buffer_donation(x, True)
    _XLAC._set_buffer_donation(x, False)
    y = x + 1
    torch_xla.sync()
    torch.testing.assert_close(y.cpu(), x.cpu() + 1)


def test_a_tensor_used_twice_is_donated_once():
    x = uploaded(8)
    expected = (x * x + x).cpu()
    _XLAC._set_buffer_donation(x, True)
    y = x * x + x
    torch_xla.sync(wait=True)
    torch.testing.assert_close(y.cpu(), expected)


@pytest.mark.parametrize("enabled", [True, False])
def test_a_sync_of_tensors_donates_by_wish_if_it_is_asked_to(enabled):
    with alias_with_buffer_donor_config(enabled):
        x, y = uploaded(4), uploaded(4)
        _XLAC._set_buffer_donation(x, True)
        z = x - y
        y += 2
        _XLAC._xla_sync_multi([x, z, y], [str(torch_xla.device())], True, False)
        assert _XLAC._is_placecholder(x) is enabled
        assert not _XLAC._is_placecholder(y)
    assert not _XLAC._xla_get_enable_alias_with_buffer_donor_config()


def test_a_sync_of_tensors_leaves_other_work_pending():
    x = uploaded(4)
    shared = x + 1
    wanted, other = shared * 2, shared * 3
    x += 5
    expected = (x.clone(), shared)
    _XLAC._xla_sync_multi([wanted, wanted[1:]], devices=[], wait=True)
    needs = _XLAC._check_tensor_need_materialization([wanted, shared, other, x])
    assert needs == [False, True, True, True]
    # Their operands were not given up, and the results are what a sync of everything gives.
    torch.testing.assert_close(other / 3, wanted / 2)
    torch.testing.assert_close(expected[0] - 4, expected[1])


def test_callbacks_come_when_the_value_is_there():
    x = uploaded(64, 64)
    y = x @ x
    seen, done = [], threading.Event()

    def told(tensor):
        seen.append(tensor)
        done.set()

    callback.on_ready_callback(y, told)
    assert done.wait(60) and seen[0] is y
    assert not _XLAC._check_tensor_need_materialization([y])[0]
    assert callback.on_ready_event(y + 1).wait(60)
    with pytest.raises(RuntimeError, match="not an XLA tensor"):
        callback.on_ready_event(torch.ones(2))
    with pytest.raises(TypeError, match="3 is none"):
        callback.on_ready_callback(y, 3)


@pytest.mark.usefixtures("programs_only")
def test_a_compiled_function_wishes_for_its_arguments_memory():
    @torch.compile(backend="openxla")
    def scaled(x):
        torch.ops.xla.dynamo_set_buffer_donor_(x, True)
        return x * 2

    @torch.compile(backend="openxla")
    def scale(x):
        x = torch.ops.xla.dynamo_set_buffer_donor_(x, True)
        x *= 2

    for _ in range(2):
        x = uploaded(5, 5)
        expected = x.cpu() * 2
        torch_xla.sync()
        doubled = scaled(x)
        assert _XLAC._get_buffer_donation(x)
        torch_xla.sync(wait=True)
        assert _XLAC._is_placecholder(x)  # its memory was given up
        torch.testing.assert_close(doubled.cpu(), expected)
        for times in (2, 4):
            scale(doubled)
            torch_xla.sync()
            torch.testing.assert_close(doubled.cpu(), expected * times)
