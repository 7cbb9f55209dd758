"""Section: GPU time by layer, call path, source line and call stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import NamedTuple
from fastprof.analysis.notes import NO_GPU_WORK, NOTHING_SELECTED
from fastprof.analysis.stacks.columns import TIMES
from fastprof.analysis.stacks.tree import DIRECTIONS, MEASURES, Stacks, stacks
from fastprof.model.columns import Ints
from fastprof.model.heading import Heading
from fastprof.model.table import ColumnData, Floats, Table, text_column
from fastprof.page.section import Chart, PageSource, Section
from fastprof.profile.data import ProfileData
from fastprof.profile.recording_hints import advice_on


class _View(NamedTuple):
    """A tree that the chart can show.

    Parameters
    ----------
    kind : see `fastprof.analysis.stacks.tree.stacks`
    title : name of the view
    lacking : what to record where it is missing, a key of `fastprof.profile.recording_hints`
    """

    kind: str
    title: str
    lacking: str


_VIEWS: Final = (
    _View("layers", "Layers", "layer"),
    _View("path", "Call path", "range"),
    _View("lines", "Source lines", "source line"),
    _View("stack", "Call stack", "source line"),
)
_PLAIN: Final = "Operators"  # replaces layers where there are none
_LEAST: Final = 1e-5  # of all GPU time
_MOST: Final = 100  # rows of the table
_BELOW: Final = frozenset({"all", "op", "kernel", "smaller"})
_HEADINGS: Final = (
    Heading("type", "type", "", "what the row is: layer, operator, kernel, ..."),
    Heading("path", "path", "", "names from the outermost to the row"),
    *(time for time in TIMES if time.key != "gpu_ns"),
    Heading("gpu_ns", "gpu", "ns", "GPU time of the row and of all rows inside it", digits=5),
    Heading("share", "share", "share", "of all GPU time"),
    Heading("kernels", "kernels", "", "kernels, graphs, copies and memsets"),
)


def section(source: PageSource) -> Section:
    """An icicle: width is GPU time, rows are layers, ranges or lines, down to kernels."""
    profile = source.profile
    if not len(profile):
        return Section("where-time-goes", "Where time goes", missing=[NO_GPU_WORK])
    known: dict[str, Drawn] = {}
    plain: dict[str, Drawn] = {}
    for view in _VIEWS:  # one whole tree at a time: it may have as many nodes as the file has names
        tree = stacks(profile, view.kind, where=source.where, **source.peaks)
        if _is_known(tree):
            known[view.title] = drawn(tree.pruned(_LEAST), with_table=not known)
        elif view is _VIEWS[0]:
            plain = {_PLAIN: drawn(tree.pruned(_LEAST), with_table=True)}
        del tree
    shown = known | plain
    if not shown or not any(tree.has_time for tree in shown.values()):
        return Section("where-time-goes", "Where time goes", missing=[NOTHING_SELECTED])
    title, first = next(iter(shown.items()))
    heading = f"Where time goes, by {_lower(title)}: largest parts"
    return Section(
        "where-time-goes",
        "Where time goes",
        charts=[chart_of(shown)],
        tables=[] if first.table is None else [(heading, first.table)],
        missing=list(
            _missing(profile, {view.lacking for view in _VIEWS if view.title not in known})
        ),
    )


class Drawn(NamedTuple):
    """What the page has of a tree, which takes less memory than its sums.

    Parameters
    ----------
    names, arrays : the data of the chart
    has_time : whether anything runs
    table : the largest nodes; of the first tree only
    """

    names: dict[str, Any]
    arrays: dict[str, Any]
    has_time: bool
    table: Table | None


def drawn(tree: Stacks, with_table: bool = False) -> Drawn:
    """What the page has of a tree."""
    table = _table(tree) if with_table else None
    return Drawn(_names(tree), _arrays(tree), bool(tree.own("ns").any()), table)


def chart_of(trees: Mapping[str, Drawn]) -> Chart:
    """An icicle of trees by title; the reader chooses one."""
    arrays: dict[str, Any] = {}
    for i, tree in enumerate(trees.values()):
        arrays |= {f"{name}{i}": array for name, array in tree.arrays.items()}
    return Chart(
        "flame",
        f"GPU time by {_listed(list(trees))}. Width is time; rows below are parts of the row "
        "above. Click a part to zoom in, press Escape to go back.",
        {"views": [{"title": title, **tree.names} for title, tree in trees.items()]},
        arrays,
        ("flame.css", "flame_tree.js", "flame_draw.js", "flame_parts.js"),
    )


def _is_known(tree: Stacks) -> bool:
    """Whether the tree has more than operators and kernels outside of what its rows are."""
    is_told = tree.name.fits(lambda name: not name.startswith("(no "))
    return bool((is_told & ~tree.type.fits(_BELOW.__contains__)).any())


def _missing(profile: ProfileData, lacking: set[str]) -> Iterator[str]:
    for text in sorted(lacking):
        yield advice_on(profile.about, profile.contents, text)


def _listed(titles: list[str]) -> str:
    names = list(map(_lower, titles))
    return ", ".join(names[:-1]) + (" and " if names[1:] else "") + names[-1]


def _lower(title: str) -> str:
    return title[:1].lower() + title[1:]


def _names(tree: Stacks) -> dict[str, Any]:
    return {
        "names": [str(value) for value in tree.name.values],
        "types": tree.type.values,
        "phases": tree.dominant["phase"].values,
        "kinds": tree.dominant["kind"].values,
    }


def _arrays(tree: Stacks) -> dict[str, Any]:
    """The nodes, and the measures of the nodes and directions with kernels of their own.

    `at` is the index 3 * node + direction of each; NaN is unknown.
    """

    def own(name: str) -> npt.NDArray[Any]:
        return np.stack([tree.own(name, direction) for direction in DIRECTIONS], 1).ravel()

    at = np.flatnonzero((own("kernels") > 0) | (own("calls") > 0))
    result: dict[str, Any] = {"at": at.astype(np.int32)}
    for name in MEASURES:
        values = own(name)[at]
        some = values.astype(np.float64)
        result[name] = np.where(values == -1, np.nan, some) if values.dtype.kind == "i" else some
    if not tree.n_windows:
        del result["step_ns"]
    return {
        "parent": tree.parent,
        "name": tree.name.ids,
        "type": tree.type.ids,
        "phase": tree.dominant["phase"].ids,
        "kind": tree.dominant["kind"].ids,
        **result,
    }


def _table(tree: Stacks) -> Table:
    """The largest nodes, without the root, the longest first."""
    time = tree.inclusive("ns")
    rows = 1 + np.argsort(-time[1:], kind="stable")[:_MOST]
    columns: dict[str, ColumnData] = {
        "type": tree.type.take(rows),
        "path": text_column([" › ".join(tree.chain(row)) for row in rows.tolist()]),
    }
    for direction in DIRECTIONS:
        columns[f"{direction}_ns"] = Ints(tree.inclusive("ns", direction)[rows])
    columns["gpu_ns"] = Ints(time[rows])
    columns["share"] = Floats(time[rows] / max(int(time[0]), 1))
    columns["kernels"] = Ints(tree.inclusive("kernels")[rows])
    return Table(columns, _HEADINGS)
