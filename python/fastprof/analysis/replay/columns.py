"""The options, headings and help of `whatif`. Imports no numpy."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.key_names import condition, keys
from fastprof.analysis.options import STEPS
from fastprof.analysis.registry import Option
from fastprof.analysis.roofline.columns import PEAKS, ROOF, gpu_name
from fastprof.errors import ReportError
from fastprof.model.heading import Heading

HOST: Final = "host"
TYPES: Final = ("tf32", "fp16", "bf16", "fp8")


def scaling(text: str) -> tuple[str, float]:
    """SELECTOR:FACTOR: the selector, `host` or KEY=PATTERN, and the factor.

    Raises
    ------
    ReportError
        The text has another form, or the key is unknown.
    """
    selector, _, number = text.rpartition(":")
    try:
        factor = float(number)
    except ValueError:
        factor = -1.0
    if not selector or not 0 <= factor <= 1000:
        raise ReportError(
            f"scale: expected KEY=PATTERN:FACTOR such as op=linear:0.5, or host:0.5, with a "
            f"factor from 0 to 1000; found {text!r}"
        )
    if selector != HOST:
        condition(selector)
    return selector, factor


def _selector(text: str) -> str:
    condition(text)
    return text


def _scaling(text: str) -> str:
    scaling(text)
    return text


def _type(text: str) -> str:
    if text not in TYPES:
        raise ValueError(f"expected {', '.join(TYPES)}, found {text!r}")
    return text


def _multiple(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 2 <= int(text[:6]) <= 4096:
        raise ValueError(f"expected a number from 2 to 4096, found {text!r}")
    return int(text)


def _keys(text: str) -> tuple[str, ...]:
    return keys(text)


def _of_kernels(name: str, about: str) -> Option:
    return Option(name, f"{about} (repeatable)", "KEY=PATTERN", _selector, is_repeatable=True)


OPTIONS: Final = (
    Option(
        "scale",
        "GPU time of the kernels times a factor, e.g. op=linear:0.5; host:FACTOR scales the host's "
        "own time and calls (repeatable)",
        "SELECTOR:FACTOR",
        _scaling,
        is_repeatable=True,
    ),
    _of_kernels("ideal", "kernels at the roofline, see --roof"),
    _of_kernels("remove", "no such kernels, nor their launches"),
    _of_kernels("overlap", "copies or communication behind other work, on a stream of their own"),
    _of_kernels("fuse", "neighbours on a stream, in one layer and phase, as one kernel"),
    Option("dtype", "fp32 products in this type: tf32, fp16, bf16 or fp8", "TYPE", _type),
    Option("pad", "16-bit products padded to multiples of N, for tensor cores", "N", _multiple),
    Option("graph", "launches between waits as one CUDA graph", default=False),
    Option("no_sync", "no waits of the host for the GPU", default=False),
    Option("no_data_loading", "batches are ready when the host fetches them", default=False),
    Option(
        "on",
        "on another GPU of the table, e.g. B200: times of kernels as intervals, the host as it is",
        "NAME",
        gpu_name,
    ),
    Option(
        "by",
        "the critical path by these keys, separated by commas, after the changes; with --on, the "
        "GPU time",
        "KEYS",
        _keys,
    ),
    STEPS,
    ROOF,
    *PEAKS,
)

CHANGES: Final = (
    Heading("name", "change", "", "the change; recorded: without changes", min_width=20),
    Heading("wall_ns", "step", "ns", "mean length of a step after the change"),
    Heading("saved_ns", "saved", "ns", "how much shorter it is", same_unit="wall_ns"),
    Heading("share", "saved", "share", "the same as a share of the recorded step"),
    Heading("binds", "binds", "", "what takes most of the critical path after the change"),
    Heading("binds_share", "of path", "share", "its share of the critical path"),
    Heading("changed", "changed", "", "kernels or host calls that the change concerns"),
)
OF_SPEEDUPS: Final = (
    Heading("key", "what", "", "op, layer, line or resource"),
    Heading("value", "faster", "", "its value", keeps_end=True, min_width=20),
    Heading("gpu_ns", "time", "ns", "GPU or host time per step"),
    Heading(
        "path_ns",
        "on path",
        "ns",
        "the part of it on the critical path, the most that it can save; resources add up to the "
        "step",
        same_unit="gpu_ns",
    ),
    Heading("saved_10_ns", "10%", "ns", "saved if it is 10 % faster", same_unit="gpu_ns"),
    Heading("saved_50_ns", "50%", "ns", "saved if it is 50 % faster", same_unit="gpu_ns"),
    Heading("saved_100_ns", "100%", "ns", "saved if it takes no time", same_unit="gpu_ns"),
    Heading(
        "then",
        "then",
        "",
        "if it saves less than it takes of the path: what takes most of the path then",
    ),
    Heading("then_ns", "takes", "ns", "how much", same_unit="gpu_ns"),
)
OF_PATH: Final = (
    Heading("path_ns", "path", "ns", "time on the critical path per step"),
    Heading("path_share", "share", "share", "the same as a share of the path"),
    Heading("kernels_ns", "kernels", "ns", "of it, kernels and copies", same_unit="path_ns"),
    Heading("host_ns", "host", "ns", "of it, host time before and in calls", same_unit="path_ns"),
    Heading("waits_ns", "waits", "ns", "of it, latency, gaps and waits", same_unit="path_ns"),
    Heading("gpu_ns", "GPU", "ns", "GPU time per step", same_unit="path_ns"),
    Heading("slack_ns", "slack", "ns", "how much later its kernels may start: the least of them"),
)
OF_OTHER_GPU: Final = (
    Heading("gpu_ns", "GPU", "ns", "GPU time per step, as recorded"),
    Heading("low_ns", "at least", "ns", "the same on the other GPU, at least", same_unit="gpu_ns"),
    Heading("high_ns", "at most", "ns", "the same, at most", same_unit="gpu_ns"),
    Heading("width", "width", "", "the longest by the shortest time", decimals=2),
    Heading(
        "rule",
        "rule",
        "",
        "what decides most of it: compute, bandwidth: a roof; mixed: mostly neither; fixed: no "
        "work to speak of; no cost: FLOPs and bytes unknown; link: to the host or another GPU",
    ),
    Heading(
        "verdict",
        "verdict",
        "",
        "faster, slower, alike, not slower, not faster: within 10 %; either: both; cannot tell: "
        "the interval is wider than a factor of two",
    ),
)
_TWICE: Final = ("path_ns", "gpu_ns")
COLUMNS: Final = (
    *CHANGES,
    *OF_SPEEDUPS,
    *(heading for heading in (*OF_PATH, *OF_OTHER_GPU) if heading.key not in _TWICE),
)

DESCRIPTION: Final = """\
What a step would take if some of it were faster or absent. A replay starts each kernel when its
launch, its stream and the work that it waits for allow it, and each host call when its thread does.
Without changes: what a step saves if an operator, layer, line or resource is 10, 50 or 100 %
faster. No part saves more than its time on the critical path; where it saves less, `then` says what
takes most of the path that the step follows then. With changes: the step after each alone and after
all together, and what then takes most of the critical path. With --by: the critical path by any
keys. Savings overlap: their sum is not what all together save. With --on: the step on another GPU
of the table, at least and at most, with the host as recorded; --by then lists the GPU time there.
docs/replay.md describes the model, its assumptions, its limits and its errors.

$ fastprof whatif resnet50.json.gz --limit 8 -w 98
Tesla V100-DGXS-32GB, 6 steps (ProfilerStep#5 to #10)
step 175.5 ms; replayed without changes 175.5 ms, largest difference of a step 0.00%
critical path: host 47%, data loading 38%, GPU 14%, copies 1%

what      faster          time(ms)  on path(ms)  10%(ms)  50%(ms)  100%(ms)  then  takes(ms)
resource  GPU                98.59        23.99     0.01     0.88      0.88  host     105.47
resource  copies              2.00         1.97     0.19     0.96      1.91  host      92.99
resource  host                  na        82.29     8.23    37.41     50.06  GPU       97.71
resource  data loading          na        67.07     6.71    33.54     56.98  GPU       66.22
resource  blocking copy         na         0.18     0.02     0.09      0.18  na           na
resource  sync                  na         0.00     0.00     0.00      0.00  na           na
resource  launch latency        na         0.01       na       na        na  na           na
change    no-sync             5.32           na       na       na      1.93  na           na
... 12 more rows
means exclude step 5: the GPU work before it is not recorded

$ fastprof whatif resnet50.json.gz --no-data-loading --scale op=conv2d:0.5 -w 88
Tesla V100-DGXS-32GB, 6 steps (ProfilerStep#5 to #10)
step 175.5 ms; replayed without changes 175.5 ms, largest difference of a step 0.00%
critical path: host 47%, data loading 38%, GPU 14%, copies 1%

change               step(ms)  saved(ms)  saved(%)  binds  of path(%)  changed
recorded                175.5        0.0       0.0  host         46.9        0
scale op=conv2d:0.5     174.6        0.9       0.5  host         60.4     2412
no-data-loading         118.5       57.0      32.5  GPU          55.9        6
all together            107.6       67.9      38.7  host         98.0     2418
means exclude step 5: the GPU work before it is not recorded
"""
