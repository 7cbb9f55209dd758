"""The answer first: the lines above the table of `summary`."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Final

from fastprof.analysis.intervals import busy_by_device
from fastprof.model.quantity import quantity
from fastprof.profile.facts import gpu_names
from fastprof.profile.profile import Profile

__all__ = ["overview"]

_PARTS: Final = (("phase", 7), ("kind", 7))
_COLUMNS: Final = ("gpu_ns", "share", "kernels")
_BETWEEN: Final = "      "


def overview(profile: Profile, parts: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Lines of text, and the values in them for JSON.

    parts : the tables by phase and by kind
    """
    busy = busy_by_device(profile)
    span, work = (sum(getattr(each, name) for each in busy.values()) for name in ("span", "busy"))
    gpus = gpu_names(profile.about, profile.devices_used) or "GPU not named in the file"
    lines = [f"{gpus}, {len(profile)} kernels, copies and memsets"]
    if span:
        of = f" on {len(busy)} GPUs" if len(busy) > 1 else ""
        lines.append(
            f"{quantity(span, 'ns')}{of}: GPU busy {quantity(work, 'ns')}, {work / span:.1%}; "
            f"idle {quantity(span - work, 'ns')}"
        )
    lines += ["", *_side_by_side([_lines(parts[name], name, n) for name, n in _PARTS]), ""]
    return tuple(lines), {"span_ns": span or None, "busy_ns": work if span else None}


def _lines(table: Any, name: str, n: int) -> list[str]:
    if table.n_rows <= 1:
        return []
    text: str = table.select([name, *_COLUMNS]).untitled().text(n)
    return text.splitlines()


def _side_by_side(blocks: list[list[str]]) -> list[str]:
    shown = [block for block in blocks if block]
    widths = [max(map(len, block)) for block in shown]
    return [
        _BETWEEN.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip_longest(*shown, fillvalue="")
    ]
