"""Storages of tensors on the device: what tells which tensors share memory, and what saving relies on."""

import io
import pickle

import pytest
import torch


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_addresses_tell_who_shares_memory(device):
    base, other = torch.arange(6.0, device=device), torch.arange(6.0, device=device)
    part = base.view(2, 3)[1]
    assert base.data_ptr() == base.untyped_storage().data_ptr() != 0
    assert part.untyped_storage().data_ptr() == base.data_ptr()
    assert part.data_ptr() == base.data_ptr() + 3 * 4
    assert other.data_ptr() != base.data_ptr()
    assert part.untyped_storage()._cdata == base.untyped_storage()._cdata
    assert base.new_empty(0).data_ptr() == 0


def test_addresses_stay_while_values_change(device):
    weight = torch.nn.Linear(2, 2).to(device).weight
    address = weight.data_ptr()
    assert weight.data.data_ptr() == weight.detach().data_ptr() == address
    with torch.no_grad():
        weight.add_(1)
    assert weight.data_ptr() == weight.untyped_storage().data_ptr() == address
    weight.data = torch.zeros(2, 2, device=device)
    assert weight.data_ptr() not in (0, address)
    assert weight.untyped_storage().data_ptr() == weight.data_ptr()


def test_contents_of_a_storage(device):
    tensor = torch.tensor([1, 2, 3], dtype=torch.uint8, device=device)
    storage = tensor[1:].untyped_storage()
    assert storage.nbytes() == 3 and storage.device == tensor.device
    assert storage.tolist() == [1, 2, 3] and storage[2] == 3
    assert storage.cpu().tolist() == [1, 2, 3]
    assert torch.empty(0, dtype=torch.uint8, device=device).set_(storage, 1, (2,)).tolist() == [
        2,
        3,
    ]
    whole = torch.ones(2, device=device)
    halves = torch.empty(0, dtype=torch.int16, device=device).set_(whole.untyped_storage())
    assert halves.tolist() == [0, 0x3F80, 0, 0x3F80]
    shared = torch.empty(0, dtype=torch.uint8, device=device).set_(storage)
    shared[0] = 9
    assert tensor.tolist() == [9, 2, 3]
    del tensor, shared
    assert storage.nbytes() in (0, 3)  # who holds the storage alone has an empty one


def test_memory_is_not_read_from_outside(device):
    weight = torch.nn.Linear(2, 2).to(device).weight.detach()
    for tensor in (weight, torch.ones(2, device=device)):
        with pytest.raises((RuntimeError, TypeError)):
            tensor.numpy()
        with pytest.raises(RuntimeError):
            torch.utils.dlpack.to_dlpack(tensor)
    with pytest.raises(RuntimeError, match="storage"):
        torch.empty(0, device=device).set_(torch.ones(2).untyped_storage())


@pytest.mark.parametrize("target", ["cpu", None])
def test_saved_tensors_share_memory_again(target, device):
    model = torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False))
    model[1].weight = model[0].weight
    model.to(device)
    file = saved(model.state_dict())
    assert len(file.getvalue()) < len(
        saved({k: v.clone() for k, v in model.state_dict().items()}).getvalue()
    )
    loaded = torch.load(file, map_location=target)
    first, second = loaded["0.weight"], loaded["1.weight"]
    assert first.device.type == (target or "xla")
    assert first.data_ptr() == second.data_ptr()
    first.zero_()
    assert not second.any()


def test_saved_views_are_views_again(device):
    base = torch.arange(6.0, device=device)
    part, other = base.view(2, 3).t()[1:], base[:2]
    for target in ("cpu", None):
        loaded, a, b = torch.load(
            saved([base, part, other]), map_location=target, weights_only=False
        )
        assert torch.equal(a.cpu(), part.cpu()) and torch.equal(b.cpu(), other.cpu())
        assert a.stride() == part.stride()
        loaded.fill_(1)
        assert a.tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("wants_gradient", [(True, False), (False, True), (True, True)])
def test_saved_views_are_leaves_of_their_own(wants_gradient, device):
    whole = torch.arange(4.0, device=device)
    tensors = [whole.requires_grad_(wants_gradient[0]), whole.detach()[1:]]
    tensors[1].requires_grad_(wants_gradient[1])
    for target in ("cpu", None):
        loaded, part = torch.load(saved(tensors), map_location=target)
        assert (loaded.requires_grad, part.requires_grad) == wants_gradient
        assert loaded.is_leaf and part.is_leaf and part._base is None
        with torch.no_grad():
            loaded.zero_()
        assert not part.any()


@pytest.mark.parametrize(
    "dtype",
    [torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.float8_e5m2, torch.uint16],
)
def test_saved_types(dtype, device):
    tensor = torch.arange(4).to(dtype)
    back = torch.load(saved(tensor.to(device)))
    assert back.device.type == "xla" and back.dtype == dtype
    assert torch.equal(back.cpu().view(torch.uint8), tensor.view(torch.uint8))
    if dtype not in torch.storage._new_dtypes():  # of which torch cannot read its own either
        again = pickle.loads(pickle.dumps(tensor.to(device)))
        assert again.device.type == "xla" and torch.equal(again.cpu(), tensor)


def test_saved_parameters_and_conjugates(device):
    weight = torch.nn.Parameter(torch.ones(2, device=device))
    assert torch.load(saved(weight), weights_only=False).requires_grad
    number = torch.tensor([1 + 2j], device=device).conj()
    back = torch.load(saved(number))
    assert back.is_conj() and back.tolist() == [1 - 2j]


def test_files_load_where_the_package_is_not(device, program):
    path = program.folder / "tensors.pt"
    torch.save({"a": torch.arange(3.0, device=device)}, path)
    code = f"import torch; print(torch.load({str(path)!r}, map_location='cpu')['a'].tolist())"
    assert program.run_code(code).stdout == "[0.0, 1.0, 2.0]\n"
