"""GFLOP/s of the engine's library calls next to torch's own operators, as a markdown table.

python benchmarks/engine/library_calls.py BUILD/benchmarks/engine/library_calls [threads ...]
"""

import os
import re
import subprocess
import sys
import time

TORCH = r"""
import sys, time, torch
torch.set_num_threads(int(sys.argv[1]))
def seconds(run):
    run()
    best = 1e9
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.2:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best
for name in sys.stdin.read().split():
    part = name.split("_")
    if part[0] == "gemm":
        m, n, k = map(int, part[2].split("x"))
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f64": torch.float64}[part[1]]
        a, b = torch.zeros(m, k, dtype=dtype), torch.zeros(k, n, dtype=dtype)
        print(name, 2e-9 * m * n * k / seconds(lambda: a @ b), flush=True)
        continue
    kind, layout, x, o, ks = part
    n, c, h = map(int, x.split("x"))
    o, (k, s) = int(o), map(int, ks[1:].split("s"))
    form = torch.channels_last if layout == "nhwc" else torch.contiguous_format
    x = torch.zeros(n, c, h, h).to(memory_format=form)
    w = torch.zeros(o, c, k, k).to(memory_format=form)
    y = torch.nn.functional.conv2d(x, w, stride=s, padding=k // 2)
    flops = 2e-9 * y.numel() * c * k * k
    def gradient(mask):
        torch.ops.aten.convolution_backward(y, x, w, None, [s, s], [k // 2] * 2, [1, 1], False,
                                            [0, 0], 1, mask)
    run = {"fwd": lambda: torch.nn.functional.conv2d(x, w, stride=s, padding=k // 2),
           "dx": lambda: gradient([True, False, False]),
           "dw": lambda: gradient([False, True, False])}[kind]
    with torch.no_grad():
        print(name, flops / seconds(run), flush=True)
"""


def main() -> None:
    binary, threads = sys.argv[1], [int(n) for n in sys.argv[2:]] or [1, 2]
    print("| threads | shape | ours | torch | ratio | how |\n|---|---|---|---|---|---|")
    for count in threads:
        environment = dict(os.environ, TORCH_XLA_NUM_THREADS=str(count))
        ours = subprocess.run([binary], env=environment, capture_output=True, text=True, check=True)
        rows = [line.split(" ", 2) for line in ours.stdout.splitlines()]
        time.sleep(0.5)
        names = "\n".join(row[0] for row in rows)
        theirs = subprocess.run(
            [sys.executable, "-c", TORCH, str(count)],
            input=names,
            capture_output=True,
            text=True,
            check=True,
        )
        torch = dict(re.findall(r"^(\S+) (\S+)$", theirs.stdout, re.M))
        for name, gflops, how in rows:
            other = float(torch[name])
            print(
                f"| {count} | {name} | {gflops} | {other:.1f} | {float(gflops) / other:.2f} | {how} |"
            )


if __name__ == "__main__":
    main()
