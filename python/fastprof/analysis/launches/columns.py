"""The headings of `launches`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.model.heading import Heading


def _time_of_call(key: str, header: str, about: str) -> Heading:
    return Heading(key, header, "ns", about, same_unit="call_median_ns", in_text=False)


COLUMNS: Final = (
    Heading("launches", "launches", "", "calls that launched kernels or a graph"),
    Heading("kernels", "kernels", "", "kernels, and graphs recorded as one", rank=3),
    Heading("host_ns", "host", "ns", "host time in these calls"),
    Heading("call_mean_ns", "call", "ns", "mean host time of a call", in_text=False),
    Heading("call_median_ns", "call", "ns", "median host time of a call"),
    _time_of_call("call_min_ns", "call min", "shortest call"),
    _time_of_call("call_max_ns", "call max", "longest call"),
    Heading(
        "latency_ns", "to start", "ns", "median time from the start of the call to the kernel's"
    ),
    Heading(
        "queue_ns",
        "queue",
        "ns",
        "median time from the end of the call to the start of the kernel, where positive",
        rank=2,
    ),
    Heading("queued", "queued", "", "kernels that start after the call ends", in_text=False),
    Heading("gpu_ns", "gpu", "ns", "GPU time", rank=1),
    Heading(
        "short_share", "short", "share", "launches whose GPU time is shorter than the call", rank=1
    ),
    Heading(
        "starved_share",
        "starved",
        "share",
        "kernels that start less than 10 us after the call ends, or before: the GPU waited for "
        "the launch",
    ),
)

DESCRIPTION: Final = """\
Launches of kernels and graphs: host time, time until the kernel starts, and the
queue of launched work. A kernel that starts right after its launch is starved:
the GPU had nothing else to do. Launches are the limit if many kernels are
starved; then capture CUDA graphs, fuse operators or increase the batch.
The host time of a call that launches several kernels, such as a graph, counts
in the row of the first. The bars show the length of the queue over time.

$ fastprof launches resnet50.json.gz --limit 5 -w 80
Tesla V100-DGXS-32GB, 6 steps (ProfilerStep#5 to #10)
step 174.8 ms: 1462 kernels, 1462 launches, which take 13.97 ms of host time
  (8.0% of the step)
not launch-bound: 17.5% of the kernels start within 10 us of their launch
  (starved); 61.9% of the launches take longer than their GPU work
medians: launch call 9 us, from call to start 9.762 ms, queue 9.754 ms
queue of GPU 0: 101 kernels and copies on average, at most 569; empty for 42.3%
  of the time
|▁▁▂▄▆  ▁▁▁▄▇  ▁▁▁▄█▁ ▁▁▁▃▇▁ ▁▁▁▂▇▃ ▁▁▁▄█|

op          launches  host(ms)  call(us)  to start(ms)  gpu(ms)  starved(%)
add_            2994     27.11      8.00         18.52     24.1         1.0
conv2d          2106     19.69      8.00          4.94    399.5         9.7
mul_             966      8.57      8.00         21.34      2.4         0.0
batch_norm       636      8.55     13.00          0.59     96.2        25.2
zero_            966      7.04      7.00          0.01      1.0       100.0
... 8 more rows
total           8772     83.79      9.00          9.76    591.5        17.5
(too narrow for kernels, queue(ms), short(%))
"""
