"""Several threads of one process record, train and read at the same time, each sync taking what all have recorded."""

import threading

import pytest
import torch
from torch import nn

import torch_xla
from torch_xla import _XLAC

THREADS = 6


def run_in_threads(work):
    """Calls work(0), work(1), …, each in a thread; raises what the first one raised."""
    errors = []

    def call(index):
        try:
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(index,)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def batch(seed):
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(seed))


def train(network, device, index):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for step in range(40):
        optimizer.zero_grad()
        network(batch(100 * index + step).to(device)).square().mean().backward()
        optimizer.step()
        if device == "xla" and step % 5 == index % 5:
            torch_xla.sync()
    return [parameter.detach().cpu() for parameter in network.parameters()]


@pytest.mark.slow
def test_training():
    """A sync of one thread runs, and donates the parameters of, steps that another is recording."""

    def network():
        return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))

    networks = [network() for _ in range(THREADS)]
    copies = [network().to("xla") for _ in range(THREADS)]
    for original, copy in zip(networks, copies, strict=True):
        copy.load_state_dict(original.state_dict())

    def work(index):
        expected = train(networks[index], "cpu", index)
        torch.testing.assert_close(train(copies[index], "xla", index), expected)

    for _ in range(3):
        for original, copy in zip(networks, copies, strict=True):
            copy.load_state_dict(original.state_dict())
        run_in_threads(work)


def test_serving():
    """One network answers in several threads."""
    network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to("xla")
    with torch.inference_mode():
        expected = [network(batch(i).to("xla")).cpu() for i in range(8)]

    def work(index):
        for step in range(60):
            which = (index + step) % 8
            with torch.inference_mode():
                answer = network(batch(which).to("xla"))
            if step % 3 == 0:
                torch_xla.sync()
            torch.testing.assert_close(answer.cpu(), expected[which])

    run_in_threads(work)


def test_a_tensor_that_others_change():
    """Additions are not lost between syncs; each is made under a lock, as on any device."""
    total, lock = torch.zeros(4, device="xla"), threading.Lock()

    def work(index):
        for step in range(50):
            with lock:
                total.add_(1)
            if step % 7 == index:
                torch_xla.sync()
            float(total[index % 4])

    run_in_threads(work)
    assert total.tolist() == [50.0 * THREADS] * 4


def test_parts_of_one_tensor():
    """Each thread writes its own rows, without a lock."""
    table = torch.zeros(THREADS, 8, device="xla")

    def work(index):
        for step in range(60):
            table[index] += step
            if step % 9 == index:
                torch_xla.sync()

    run_in_threads(work)
    assert table.tolist() == [[float(sum(range(60)))] * 8] * THREADS


def test_what_a_thread_has_written_is_part_of_its_next_sync():
    """Also when another thread's sync, of the value before, ends at that moment."""
    tensors = [torch.zeros(2, device="xla") for _ in range(THREADS)]

    def work(index):
        for _ in range(100):
            tensors[index].add_(1)
            torch_xla.sync()
            text = _XLAC._get_xla_tensor_debug_info(tensors[index])
            assert "IR: None" in text, text

    run_in_threads(work)
    assert [tensor.tolist() for tensor in tensors] == [[100.0, 100.0]] * THREADS


def test_draws_of_one_generator():
    """No two threads get the same numbers, and each draw moves the stream on once."""
    generator = torch.Generator("xla").manual_seed(3)
    drawn = [[] for _ in range(THREADS)]

    def work(index):
        for step in range(60):
            drawn[index].append(torch.rand(4, device="xla", generator=generator))
            if step % 10 == index:
                torch_xla.sync()
                generator.initial_seed(), generator.get_state()

    run_in_threads(work)
    rows = torch.stack([row for rows in drawn for row in rows]).cpu()
    assert len({tuple(row) for row in rows.tolist()}) == 60 * THREADS
    generator_alone = torch.Generator("xla").manual_seed(3)
    for _ in range(60 * THREADS):
        torch.rand(4, device="xla", generator=generator_alone)
    assert torch.equal(generator.get_state(), generator_alone.get_state())


@pytest.mark.slow
def test_a_compiled_function_that_several_threads_call():
    function = torch.compile(lambda x: (x * 2 + 1).sum(), backend="openxla")
    function(torch.ones(4, device="xla"))

    def work(index):
        for step in range(40):
            x = torch.full((4,), float(100 * index + step))
            assert function(x.to("xla")).item() == (x * 2 + 1).sum().item()

    run_in_threads(work)


def test_graphs_are_forgotten_while_others_are_made():
    """Operations that nobody uses any more are given up while other threads record them."""

    def work(index):
        for step in range(150):
            x = torch.ones(1 + (7 * step + index) % 50, 2, device="xla")
            assert (x * 3 + index).sum().item() == x.numel() * (3 + index)

    run_in_threads(work)
