"""The headings, keys and help of `memory`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.key_names import DEPTH, KEY_NAMES, heading_of
from fastprof.errors import ReportError
from fastprof.model.heading import Heading
from fastprof.model.names import unknown_name
from fastprof.profile.reports import Option

__all__ = [
    "BY",
    "COLUMNS",
    "DESCRIPTION",
    "DEVICE",
    "EARLIER",
    "memory_heading",
    "memory_keys",
]

EARLIER: Final = "(earlier)"  # the row of blocks from before the capture

_OWN_KEYS: Final = {
    "category": "parameters, inputs, activations, gradients, optimizer state, kept, temporary or "
    "unknown",
    "device": "memory: GPU 0, CPU, pinned, managed",
    "size": "size of the block in bytes",
    "state": "of a snapshot: active, freed while in use by a stream, or inactive",
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
"""
