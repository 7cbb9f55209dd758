"""What this GPU reaches: products of each data type, copies, and the shortest kernel."""

from __future__ import annotations

import json
import statistics

N = 8192


def _median(function, n: int = 10) -> float:
    """Median of n calls, in seconds by CUDA events, after three."""
    import torch

    for _ in range(3):
        function()
    times = []
    for _ in range(n):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return statistics.median(times)


def _products() -> dict[str, float]:
    """FLOP/s of products of N × N matrices of random numbers."""
    import torch

    flops, peaks = 2.0 * N**3, {}
    for name in ("bfloat16", "float16", "float32", "float64"):
        n = N if name != "float64" else N // 2
        a = torch.randn(n, n, device="cuda", dtype=torch.float32).to(getattr(torch, name))
        peaks[name] = 2.0 * n**3 / _median(lambda a=a: a @ a)
    torch.backends.cuda.matmul.allow_tf32 = True
    a = torch.randn(N, N, device="cuda")
    peaks["tf32"] = flops / _median(lambda: a @ a)
    if torch.cuda.get_device_capability() >= (8, 9):
        a8, scale = a.to(torch.float8_e4m3fn), torch.tensor(1.0, device="cuda")
        product = torch._scaled_mm
        peaks["float8"] = flops / _median(
            lambda: product(a8, a8.t(), scale, scale, out_dtype=torch.bfloat16)
        )
    i8 = torch.randint(-128, 127, (N, N), device="cuda", dtype=torch.int8)
    peaks["int8"] = flops / _median(lambda: torch._int_mm(i8, i8.t()))
    return peaks


def _copies() -> dict[str, float]:
    """Bytes/s of copies of 1 GiB: on the device (read and written), and from and to the host."""
    import torch

    n = 2**30
    device = torch.empty(n, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(device)
    pageable = torch.empty(n, dtype=torch.uint8)
    pinned = torch.empty(n, dtype=torch.uint8, pin_memory=True)
    return {
        "device": 2 * n / _median(lambda: other.copy_(device)),
        "write": n / _median(lambda: device.zero_()),
        "pageable to device": n / _median(lambda: device.copy_(pageable), 3),
        "pinned to device": n / _median(lambda: device.copy_(pinned, non_blocking=True)),
        "device to pinned": n / _median(lambda: pinned.copy_(device, non_blocking=True)),
        "device to pageable": n / _median(lambda: pageable.copy_(device), 3),
    }


def _launches() -> dict[str, float]:
    """Nanoseconds: a launch on the host, and a kernel of one element between others in a graph."""
    import time

    import torch

    x = torch.zeros(1, device="cuda")
    for _ in range(100):
        x.add_(1)
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    for _ in range(500):
        x.add_(1)
    host = (time.perf_counter_ns() - start) / 500
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(1000):
            x.add_(1)
    return {"add_ on the host": host, "add_ in a graph": _median(graph.replay) / 1000 * 1e9}


def measure() -> None:
    """Print one JSON line: the GPU's facts, FLOP/s, bytes/s and nanoseconds."""
    import torch

    facts = torch.cuda.get_device_properties(0)
    result = {
        "gpu": facts.name, "capability": [facts.major, facts.minor], "torch": torch.__version__,
        "cuda": torch.version.cuda, "sms": facts.multi_processor_count,
        "memory": facts.total_memory, "l2": facts.L2_cache_size, "flops": _products(),
        "bytes": _copies(), "ns": _launches(),
    }  # fmt: skip
    print(json.dumps(result), flush=True)
