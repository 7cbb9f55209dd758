"""The headings, keys and help of `memory`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.key_names import DEPTH, KEY_NAMES, heading_of
from fastprof.analysis.registry import Option
from fastprof.errors import ReportError
from fastprof.model.heading import Heading, unknown_name

EARLIER: Final = "(earlier)"  # the row of blocks from before the capture

_OWN_KEYS: Final = {
    "category": "parameters, inputs, activations, gradients, optimizer state, kept, temporary or "
    "unknown",
    "device": "memory: GPU 0, CPU, pinned, managed",
    "size": "size of the block in bytes",
}
_SHARED_KEYS: Final = (
    *("op", "mod", "layer", "line", "library_line", "function", "file", "dir", "shape", "phase"),
    *("step", "range", "thread", "process", "stream"),
)
_KEYS: Final = {name: KEY_NAMES[name] for name in _SHARED_KEYS} | _OWN_KEYS

COLUMNS: Final = (
    Heading("at_peak_bytes", "at peak", "bytes", "live at the peak of the memory"),
    Heading("at_peak_share", "peak", "share", "share of the live bytes at the peak"),
    Heading("at_peak_blocks", "blocks", "", "number of live blocks at the peak", rank=2),
    Heading("allocated_bytes", "allocated", "bytes", "sum of all allocations"),
    Heading("allocations", "allocs", "", "number of allocations", rank=1),
    Heading("at_end_bytes", "at end", "bytes", "live at the end of the capture"),
    Heading("at_end_blocks", "live blocks", "", "number of live blocks at the end", in_text=False),
    Heading(
        "self_bytes",
        "self",
        "bytes",
        "allocated less freed while the operator runs, without operators inside, as in the tables "
        "of torch.profiler",
        rank=3,
    ),
    Heading("total_bytes", "total", "bytes", "the same with operators inside", rank=3),
)


def memory_keys(text: str) -> tuple[str, ...]:
    """The grouping keys of `memory`, separated by commas.

    Raises
    ------
    ReportError
        A name is unknown or occurs twice; the message names the nearest.
    """
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in _KEYS and not DEPTH.match(name):
            raise ReportError(unknown_name("key", name, list(_KEYS)))
    if len(set(names)) < len(names):
        raise ReportError(f"expected keys to group by, each once; found {text!r}")
    return names


def memory_heading(name: str) -> Heading:
    """The heading of a key's column."""
    return Heading(name, name, "", _OWN_KEYS[name]) if name in _OWN_KEYS else heading_of(name)


BY: Final = Option(
    "by",
    f"keys to group by, separated by commas: {', '.join(_KEYS)} (default: op; line of a snapshot)",
    "KEYS",
    memory_keys,
)
DEVICE: Final = Option(
    "device",
    "memory: gpu, cpu, pinned, managed or the number of a GPU (default: all GPUs, else CPU)",
    "NAME",
)

DESCRIPTION: Final = """\
Peak memory, the blocks live at the peak, and the code that allocated them. Rows are
groups of blocks that agree in all keys of --by. The lines above the table are of all
memory: peak, allocations per step, growth from step to step, live bytes over time.

Sources: traces of torch.profiler with profile_memory=True (blocks of PyTorch's
allocator), exports of nsys profile --cuda-memory-usage=true (cudaMalloc: segments of
that allocator), and memory snapshots of torch.cuda.memory._dump_snapshot. A snapshot
is a pickle: nothing in it is executed; a file with more than plain data is refused.

An allocation belongs to the operator, layer and line that are open on its thread.
(earlier) is memory from before the capture. Categories follow the phases of allocation
and free, in a snapshot the stacks; a block that fits no rule is unknown.

$ fastprof memory resnet50.json.gz --limit 4 -w 80 -c op,at_peak_bytes,allocated_bytes
GPU 0 (Tesla V100-DGXS-32GB): peak 2.792 GB above the start of the capture,
  53.02 ms after the first event, in step 5
a step: 685 allocations, 10.61 GB; live bytes at the end of steps are equal
▅▇▇█▆▂▁▁▁▁▄▇▇█▆▃▁▁▁▁▂▆▇█▇▅▁▁▁▁▁▆▇█▇▆▁▁▁▁▁▃▆▇█▇▅▁▁▁▁▅▇▇█▆ 0 B to 2.792 GB

op                  at peak(GB)  allocated(GB)
conv2d                    1.493          29.93
batch_norm                1.220          17.12
max_pool2d                0.078           1.09
cross_entropy_loss        0.000           0.00
... 42 more rows
total                     2.792          63.69
no addresses recorded: a free counts for an allocation of its size, so rows are
  estimates; totals are exact
live bytes at the start are not recorded: the peak is above the start, and
  blocks from before the capture count only if it frees them
"""
