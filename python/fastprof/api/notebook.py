"""A Profile in a notebook: the answer, the largest operators, a small icicle, and how to go on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from fastprof.analysis.reports import report_of
from fastprof.analysis.stacks.tree import Stacks, stacks
from fastprof.errors import FastprofError
from fastprof.page.table import shown
from fastprof.profile.data import ProfileData

if TYPE_CHECKING:
    from fastprof.analysis.overview.report import Overview

_ROWS: Final = 5
_NEXT: Final = (
    "report()",
    "overview()",
    "summary(by='layer')",
    "layers(fold=True)",
    "lines()",
    "idle()",
    "advise()",
    "plot.roofline()",
    "plot.timeline()",
    "to_pandas()",
)


def profile_html(profile: ProfileData, title: str) -> str:
    """HTML with inline styles. All text from the file is escaped."""
    parts = [f"<div><b>{shown(title)}</b></div>"]
    try:
        overview = cast("Overview", report_of(profile, "overview"))
    except FastprofError as error:
        parts.append(f"<div>{shown(str(error))}</div>")
    else:
        parts.append(f"<div><b>{shown(overview.facts['answer'])}</b></div>")
        parts += [f"<div>{shown(line)}</div>" for line in overview.lead]
        table = overview["ops"]
        parts.append(replace(table.head(_ROWS), lead=(), layout=None)._repr_html_())
        if table.n_rows > _ROWS:
            parts.append(f"<div>{table.n_rows - _ROWS} more rows: summary()</div>")
        parts.append(icicle(stacks(profile, "layers" if overview["layers"].n_rows else "path")))
    calls = ", ".join(f"<code>.{shown(text)}</code>" for text in _NEXT)
    return f"{''.join(parts)}<div>Next: {calls}</div>"


_LEVELS: Final = 6
_LEAST: Final = 0.005  # of the GPU time
_ROW: Final = 18  # pixels
_COLOURS: Final = ("#c6dbef", "#fdd0a2", "#c7e9c0", "#dadaeb", "#f2d0d9", "#d9d9d9")


def icicle(tree: Stacks) -> str:
    """The upper levels of a tree of GPU time as nested boxes, as wide as their shares."""
    time = tree.inclusive("ns").astype(float)
    if len(tree) < 2 or not time[0] > 0:
        return ""
    level = np.zeros(len(tree), int)
    left = np.zeros(len(tree))
    used = np.zeros(len(tree))  # by the children before
    boxes = []
    for row in range(1, len(tree)):  # parents precede their children
        above = int(tree.parent[row])
        level[row] = level[above] + 1
        left[row] = left[above] + used[above]
        share = time[row] / time[0]
        used[above] += share
        if share >= _LEAST and level[row] <= _LEVELS:
            boxes.append(_box(tree.name.at(row), int(level[row]), left[row], share))
    height = _ROW * min(int(level.max()), _LEVELS)
    style = f"position:relative;height:{height}px;max-width:1000px;margin:6px 0;color:#000"
    return f'<div style="{style}">{"".join(boxes)}</div>'


def _box(name: str | None, level: int, left: float, share: float) -> str:
    colour = _COLOURS[(level - 1) % len(_COLOURS)]
    style = (
        f"position:absolute;top:{(level - 1) * _ROW}px;left:{left:.3%};width:{share:.3%};"
        f"height:{_ROW - 1}px;background:{colour};overflow:hidden;white-space:nowrap;"
        "font:11px sans-serif;padding:0 2px;box-sizing:border-box;border-right:1px solid #fff"
    )
    text = shown(name or "na")
    return f'<div style="{style}" title="{text} {share:.1%}">{text}</div>'
