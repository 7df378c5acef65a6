"""Which lines hold the memory."""

import re


def test_what_is_held_and_the_peak(program):
    output = program.run_code(
        """
import gc, torch, torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.memory as memory
def big(n):
    return torch.ones(n, device="xla") * 2
kept = [big(1 << 20) for _ in range(3)]
kept[0] += 1
torch_xla.sync(wait=True)
print(memory.report())
print(memory.live_tensors()[0].bytes, memory.live_tensors()[0].count)
dropped = big(8 << 20)
torch_xla.sync(wait=True)
del dropped
print(memory.report())
del kept
print(memory.report())
print(memory.peak_report())
memory.reset_peak()
print([memory.peak_report()])
info = xm.get_memory_info()
print(sorted(info), info["kb_total"] - info["kb_free"] == -(-info["bytes_used"] // 1024))
""",
        PT_XLA_DEBUG_LEVEL="1",
        PT_XLA_DEBUG_FILE="reports",
    ).stdout
    now, of_the_largest, later, empty, peak, _forgotten, info = re.fullmatch(
        r"(\d+ tensors hold 12.0 MiB.*?)\n(\d+ \d+)\n(\d+ tensors.*?)\n(0 tensors.*?)\n(Peak.*?)\n(\[''\])\n(.*)\n",
        output,
        re.DOTALL,
    ).groups()
    # One was made by the addition, at its line.
    assert "  8.0 MiB: 2 x f32[1048576], made by aten::mul at <string>:6 (big)" in now
    assert re.search(
        r"  4.0 MiB: 1 x f32\[1048576\], made by aten::add\w* at <string>:8 \(<module>\)", now
    )
    assert of_the_largest == f"{8 << 20} 2"
    assert later == now
    assert empty.startswith("0 tensors hold 0.0 MiB")
    # The three tensors, and the result of the program that made the large one.
    assert float(re.match(r"Peak ([\d.]+) MiB", peak)[1]) >= 12 + 32
    assert "at <string>:6 (big)" in peak
    keys = "['bytes_limit', 'bytes_used', 'kb_free', 'kb_total', 'peak_bytes_used']"
    assert info.startswith(keys)


def test_what_comes_from_the_host_has_the_line_that_moved_it(program):
    output = program.run_code(
        """
import torch, torch_xla
import torch_xla.debug.memory as memory
linear = torch.nn.Linear(256, 256)
moved = linear.to("xla")
print(memory.report())
""",
        XLA_IR_DEBUG="1",
    ).stdout
    assert "  0.2 MiB: 1 x f32[256,256], from the host at <string>:5 (<module>)" in output


def test_the_peak_stays_when_small_results_go(program):
    """Results of a few KB lie in torch's memory, and are counted with the device's."""
    output = program.run_code(
        """
import torch, torch_xla
import torch_xla.core.xla_model as xm
def used(kind):
    return xm.get_memory_info()[kind]
kept = [torch.ones(1000, device="xla") * i for i in range(100)]
torch_xla.sync(wait=True)
held, peak = used("bytes_used"), used("peak_bytes_used")
kept.clear()
print(peak >= held >= 400_000, used("bytes_used") < held, used("peak_bytes_used") >= peak)
torch.accelerator.reset_peak_memory_stats()
print(used("peak_bytes_used") < peak)
"""
    ).stdout
    assert output == "True True True\nTrue\n"
