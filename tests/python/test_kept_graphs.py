"""Graphs that are kept by their hash, as clients of PyTorch/XLA's bridge to dynamo run them."""

import pytest
import torch

import torch_xla
import torch_xla.debug.metrics as met
from torch_xla import _XLAC
from torch_xla._dynamo import config
from torch_xla._dynamo.dynamo_bridge import GraphInputMatcher, UnsupportedNodesCollector


def uploaded(*sizes):
    return torch.randn(*sizes).to("xla")


def kept(tensors):
    _XLAC._xla_warm_up_cache(tensors, [])
    return _XLAC._get_graph_hash(tensors)


def test_a_kept_graph_runs_on_other_data():
    layer = torch.nn.Linear(4, 3).to("xla")
    x = uploaded(2, 4)
    result = layer(x).relu()
    identity = kept([result])
    ids, values = _XLAC._get_tensors_xla_device_data_node([result])
    arguments = {_XLAC._xla_get_tensor_id(x): 0}
    matcher = GraphInputMatcher(arguments, ids, values, set(arguments))
    assert matcher.graph_input_xla_values.count(None) == 1
    before = met.metric_data("RunCachedGraphInputData")
    for other in (x, uploaded(2, 4)):
        (again,) = _XLAC._run_cached_graph(identity, matcher([other]))
        torch.testing.assert_close(again.cpu(), layer(other).relu().cpu())
    samples = met.metric_data("RunCachedGraphInputData")[0] - (before[0] if before else 0)
    assert samples == 2 and met.metric_data("RunCachedGraphOutputData")


def test_inputs_come_from_the_cpu_too_and_others_are_refused():
    x = uploaded(3)
    identity = kept([x * 2])
    other = torch.randn(3)
    torch.testing.assert_close(_XLAC._run_cached_graph(identity, [other])[0].cpu(), other * 2)
    with pytest.raises(RuntimeError, match=r"f32\[3\].*f32\[4\]"):
        _XLAC._run_cached_graph(identity, [torch.randn(4)])
    with pytest.raises(RuntimeError, match="takes 1 tensors, not 0"):
        _XLAC._run_cached_graph(identity, [])
    with pytest.raises(RuntimeError, match="_xla_warm_up_cache"):
        _XLAC._run_cached_graph(b"12345678", [])
    with pytest.raises(ValueError, match="8 bytes"):
        _XLAC._run_cached_graph(b"1", [])


def test_each_tensor_that_is_recorded_work_is_a_result_once():
    x, y = uploaded(2), uploaded(2)
    total = x + y
    results = [total, x - y, x, total]
    identity = kept(results)
    ids, values = _XLAC._get_tensors_xla_device_data_node(results)
    assert sorted(ids) == sorted(map(_XLAC._xla_get_tensor_id, [x, y]))
    assert len(_XLAC._run_cached_graph(identity, values)) == 2


def test_graphs_of_other_numbers_are_others():
    x = uploaded(2, 3)
    identities = [kept([x * factor]) for factor in (2.0, 3.0)]
    for identity, factor in zip(identities, (2.0, 3.0), strict=True):
        (product,) = _XLAC._run_cached_graph(identity, [x])
        torch.testing.assert_close(product.cpu(), x.cpu() * factor)
    assert kept([x * 2.0]) == identities[0]
    # Keys of random numbers are drawn anew, and so no numbers of the graph.
    assert len({kept([x + torch.rand(2, 3, device="xla")]) for _ in range(2)}) == 1


def test_inputs_stand_in_the_order_of_the_data_where_a_result_is_data_too():
    x, y, unused = uploaded(2), uploaded(2), uploaded(2)
    results = [unused, x, x - y]
    identity = kept(results)
    _, values = _XLAC._get_tensors_xla_device_data_node(results)
    assert len(values) == 3
    (difference,) = _XLAC._run_cached_graph(identity, values)
    torch.testing.assert_close(difference.cpu(), x.cpu() - y.cpu())


def test_what_is_no_dense_tensor_is_refused():
    x = uploaded(2, 3)
    identity = kept([x + 1])
    for other in (torch.ones(2, 3).to_sparse(), torch.ones(2, 3).to_sparse_csr()):
        with pytest.raises(RuntimeError, match="input 0 of the graph is no dense tensor"):
            _XLAC._run_cached_graph(identity, [other])
    with pytest.raises(RuntimeError, match="input 0 of the graph is no dense tensor"):
        torch.func.vmap(lambda row: _XLAC._run_cached_graph(identity, [row])[0])(uploaded(2, 2, 3))
    with pytest.raises(RuntimeError, match="not an XLA tensor"):
        _XLAC._get_tensors_xla_device_data_node([torch.ones(2)])


def test_numbers_are_drawn_anew():
    x = uploaded(100)
    identity = kept([x + torch.rand(100, device="xla")])
    first, second = (_XLAC._run_cached_graph(identity, [x])[0].cpu() for _ in range(2))
    assert not torch.equal(first, second)


def test_an_identity_outlives_the_value():
    x = uploaded(2)
    identity = _XLAC._xla_get_tensor_id(x)
    for _ in range(2):
        x.add_(1)
        torch_xla.sync()
        assert _XLAC._get_tensors_xla_device_data_node([x * 2])[0] == [identity]


def test_what_is_forgotten_is_not_computed():
    torch_xla.sync()
    x = uploaded(2)
    forgotten = x + 2
    _XLAC._clear_pending_irs("xla:0")
    assert "aten::add" not in _XLAC._get_xla_tensors_text([forgotten])
    torch_xla.sync()
    assert _XLAC._is_placecholder(forgotten) and not _XLAC._is_placecholder(x)
    with pytest.raises(RuntimeError, match="what was recorded for it was forgotten"):
        forgotten.cpu()


def test_the_seed_as_a_tensor():
    torch_xla.manual_seed(23)
    seed = _XLAC._get_base_seed_as_tensor("xla:0")
    assert seed.device.type == "xla" and seed.item() == 23
    assert _XLAC._get_seed_info_id() < 0


def test_the_nodes_that_the_cpu_computes_are_found():
    def function(x):
        return torch._foobar(x * 2) * 3

    module = torch.fx.symbolic_trace(function)
    collector = UnsupportedNodesCollector(module)
    x = uploaded(3)
    torch.testing.assert_close(collector.run(x).cpu(), function(x.cpu()))
    assert [node.target.__name__ for node in collector.get_unsupported_nodes()] == ["_foobar"]


def test_inputs_are_recorded_work_only_where_they_may(monkeypatch):
    compiled = torch.compile(lambda x: x.cos().sin(), backend="openxla")
    x = uploaded(3)
    expected = (x.cpu() + 5).cos().sin()
    torch.testing.assert_close(compiled(x + 5).cpu(), expected)
    monkeypatch.setattr(config, "skip_input_data_check", True)
    compiled(x)
    with pytest.raises(RuntimeError, match="input data to dynamo graph can not be a pending ir"):
        compiled(x + 5)
