"""The headings of `diff`. Imports no numpy, for `--help`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastprof.analysis.key_names import ALIASES
from fastprof.errors import ReportError
from fastprof.model.heading import Heading, unknown_name

DEFAULT_BY: Final = ("dir", "layer", "op")
DIFF_KEYS: Final = ("phase", "dir", "layer", "range", "op", "shape", "line", "kind", "kernel")

COLUMNS: Final = (
    Heading(
        "part",
        "part",
        "",
        "compute, communication or copies; idle: and its cause; clocks: all kernels slower or "
        "faster by one factor",
    ),
    Heading("before_ns", "before", "ns", "part of the step that is its own", same_unit="delta_ns"),
    Heading("after_ns", "after", "ns", "the same in AFTER", same_unit="delta_ns"),
    Heading(
        "delta_ns",
        "change",
        "ns",
        "change of the step: after - before, less what the clocks explain; the sum is that of the "
        "step",
    ),
    Heading(
        "error_ns",
        "std error",
        "ns",
        "standard error of after - before, from the spread over steps",
        in_text=False,
    ),
    Heading("share", "of change", "share", "part of the change of the step", rank=2),
    Heading(
        "count_ns",
        "by count",
        "ns",
        "part of the change from more or fewer calls, at their mean time",
        in_text=False,
    ),
    Heading("gpu_before_ns", "GPU before", "ns", "GPU time a step", same_unit="delta_ns", rank=1),
    Heading("gpu_after_ns", "GPU after", "ns", "the same in AFTER", same_unit="delta_ns", rank=1),
    Heading("calls_before", "calls before", "", "calls a step", in_text=False),
    Heading("calls_after", "calls after", "", "calls a step in AFTER", in_text=False),
    Heading("kernels_before", "kernels before", "", "kernels a step", in_text=False),
    Heading("kernels_after", "kernels after", "", "kernels a step in AFTER", in_text=False),
    Heading("why", "why", "", "what changed", min_width=24),
)


def diff_keys(by: Sequence[str] | str) -> tuple[str, ...]:
    """Check the keys of rows: texts, or one with commas.

    Raises
    ------
    ReportError
        A name is unknown or occurs twice; the message names the nearest.
    """
    names = by.split(",") if isinstance(by, str) else by
    keys = tuple(ALIASES.get(name.strip(), name.strip()) for name in names)
    for name in keys:
        if name not in DIFF_KEYS:
            raise ReportError(unknown_name("key", name, list(DIFF_KEYS)))
    if not keys or len(set(keys)) < len(keys):
        raise ReportError(f"expected keys to group by, each once; found {','.join(keys)!r}")
    return keys
