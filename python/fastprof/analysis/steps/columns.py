"""The headings and help of `steps`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.model.heading import Heading

OUTLIER: Final = "outlier"
SLOW: Final = "slow"
CUT: Final = "cut"
WARM_UP: Final = "warm-up"
NO_WORK: Final = "no GPU work"
LOST: Final = "lost work"


def _time(key: str, header: str, about: str, rank: int = 0) -> Heading:
    return Heading(key, header, "ns", about, same_unit="wall_ns", rank=rank)


COLUMNS: Final = (
    Heading("step", "step", "", "number of the step"),
    Heading("pid", "pid", "", "process"),
    Heading("device", "gpu", "", "GPU number"),
    Heading(
        "wall_ns",
        "wall",
        "ns",
        "from the end of the GPU work of the preceding step to the end of its own: busy + idle",
    ),
    _time("busy_ns", "busy", "part of wall in which the GPU works, on any stream"),
    _time("compute_ns", "compute", "part of wall with kernels other than communication", rank=1),
    _time("communication_ns", "comm", "part of wall with communication", rank=2),
    _time("exposed_communication_ns", "exposed comm", "the same without compute"),
    _time("hidden_communication_ns", "hidden comm", "the same with compute", rank=3),
    _time("copy_ns", "copies", "part of wall with copies or memsets", rank=3),
    _time("exposed_copy_ns", "exposed copy", "the same without compute and communication"),
    _time("idle_ns", "idle", "part of wall without GPU work"),
    Heading(
        "sync_ns",
        "sync",
        "ns",
        "host time in synchronising calls and blocking copies: sum over the threads that launch "
        "work on the GPU",
        same_unit="wall_ns",
        rank=1,
    ),
    Heading(
        "data_loading_ns",
        "data loading",
        "ns",
        "host time in data loading on these threads",
        same_unit="wall_ns",
        rank=1,
    ),
    Heading(
        "alloc_ns",
        "alloc",
        "ns",
        "host time in allocation, free, creation, loading and compilation of code on these threads",
        same_unit="wall_ns",
        rank=2,
    ),
    Heading(
        "host_ns",
        "host",
        "ns",
        "host time: length of the step's range",
        same_unit="wall_ns",
        rank=3,
    ),
    Heading(
        "kernels", "kernels", "", "kernels, graphs, copies and memsets launched in the step", rank=1
    ),
    Heading("flops", "work", "flop", "floating point operations of known cost", in_text=False),
    Heading("mfu", "mfu", "share", "model FLOPs by wall and peak of the GPU", rank=2),
    Heading(
        "sm_clock_hz",
        "SM clock",
        "hz",
        "mean clock of SMs, from samples of GPU counters",
        rank=1,
    ),
    Heading("sm_active", "SM active", "share", "mean share of SMs with work, likewise", rank=2),
    Heading("tensor_active", "tensor", "share", "mean use of the tensor cores, likewise", rank=3),
    Heading("dram", "DRAM", "share", "mean use of the memory's bandwidth, likewise", rank=2),
    Heading("nvlink", "NVLink", "share", "mean use of NVLink in both directions, likewise", rank=3),
    Heading("is_counted", "counted", "", "1 if the means include the step", in_text=False),
    Heading(
        "flag", "flag", "", "outlier or slow; means exclude: warm-up, cut, lost work, no GPU work"
    ),
)

DESCRIPTION: Final = """\
The length of each step on the GPU, and how the GPU spends it. A step ends with its last GPU work
and starts where the preceding step ends, so the steps divide the time line: work of another step
inside this time counts. With several GPUs, a step has a row per GPU.

  wall      = busy + idle
  wall      = compute + exposed comm + exposed copy + idle
  exposed   communication without compute; copies without compute and communication
  outlier   wall differs from the median by over 10 % and by over 5 times the median deviation
  slow      the same, where more than a third of the steps differ: these are no exceptions
  warm-up   a first step of over 1.5 times the median of three or more
  cut       the capture starts or ends within the step
  SM clock  and the columns after it: nsys profile --gpu-metrics-devices=all records them
  lost work the file has launches of the step without their GPU work

Means include every complete step with GPU work but a warm-up: outliers and slow steps count. The
lines above the table compare each outlier, or all slow steps, with the mean of the others.

$ fastprof steps resnet50.json.gz -w 88
Tesla V100-DGXS-32GB, 6 steps (ProfilerStep#5 to #10)
step 141.1 ms ± 25 (median 126.7 ms, 123 ms to 182.3 ms): compute 99.14 ms, exposed
  copies 3.257 ms, idle 38.69 ms; GPU busy 72.6%
outlier: step 5 takes 182.3 ms, 57.13 ms over the mean of the others: idle +55.76 ms
  (before the first work +44.99 ms, host-bound +9.931 ms); host: sync +36.92 ms, data
  loading +3.626 ms
outlier: step 9 takes 163.5 ms, 38.35 ms over the mean of the others: idle +37.97 ms
  (host-bound +30.22 ms, launch latency +4.524 ms)

step  wall(ms)  busy(ms)  compute(ms)  exposed copy(ms)  idle(ms)  sync(ms)  flag
   5     182.3     103.5         99.8               3.7      78.8      40.1  outlier
   6     126.2     102.3         99.2               3.0      23.9       3.2
   7     127.2     102.2         99.1               3.0      25.0       3.2
   8     123.0     102.1         99.0               3.1      20.9       3.2
   9     163.5     102.5         98.8               3.7      61.0       4.0  outlier
  10     124.4     101.9         99.0               3.0      22.4       3.1
(too narrow for copies(ms), data loading(ms), host(ms), kernels, mfu(%))
"""
