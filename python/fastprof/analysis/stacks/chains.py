"""The chain of names around each kernel: layers, ranges, source lines or Python frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from fastprof._core import _path
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.cells import ReportCells
from fastprof.analysis.grouping import Grouping, group, numbers, texts
from fastprof.analysis.layers.report import NO_LAYER, layer_paths
from fastprof.analysis.lines.report import NO_LINE, LineRow, SourceFiles, chosen_frames, line_row
from fastprof.model.arrays import Bools
from fastprof.model.columns import Values
from fastprof.model.markers import Kind, read

# (type, name) of each node, outermost first.
Chain = tuple[tuple[str, str], ...]

NO_RANGE: Final = "(no range)"
_ANNOTATIONS: Final = frozenset({Kind.ARGUMENT, Kind.MODULE, Kind.TRACE})


class Chains(NamedTuple):
    """The chain of each cell.

    Parameters
    ----------
    cells : cells whose kernels have equal chains
    groups : the selected cells, by chain
    chains : the chain of each group, not empty; several groups may have the same
    """

    cells: ReportCells
    groups: Grouping
    chains: list[Chain]


def _of_layers(cells: ReportCells, rows: Bools | None) -> Chains:
    """Layers, as in the report `layers`."""
    groups, paths, _ = layer_paths(cells, selection=rows)
    return Chains(
        cells, groups, [_all("layer", *path) or _all("layer", NO_LAYER) for path in paths]
    )


def _of_paths(cells: ReportCells, rows: Bools | None) -> Chains:
    """The ranges around the call: `Profile.paths` with folded names. Dict lines have none."""
    if "path" not in cells.names:
        groups = group([], len(cells), rows)
        return Chains(cells, groups, [_all("range", NO_RANGE)] * groups.n)
    paths = cells.profile.paths
    label = paths.folded.mapped(_of_range)
    wanted = np.array([name != "" for name in label.values], np.uint8)
    node, above, label_of_node = _path.nodes(paths.parent, label.ids, len(wanted), wanted)
    kind = np.zeros(len(above), np.int32)
    some = wanted[label.ids] > 0
    kind[node[some]] = paths.kind.ids[some]
    of_kernel = take(node, numbers(cells.profile, "path"))
    finer = cells.refined([of_kernel])
    inside = of_kernel[finer.first]
    selected = None if rows is None else rows[cells.of_kernel[finer.first]]
    groups = group([Values(inside, [None] * len(above))], len(finer), selected)
    names = list(
        zip(
            Values(kind, paths.kind.values).array().tolist(),
            Values(label_of_node, label.values).array().tolist(),
            strict=True,
        )
    )
    parent = above.tolist()
    chains = [
        tuple(names[upward] for upward in _upwards(parent, number))[::-1] or _all("range", NO_RANGE)
        for number in inside[groups.first].tolist()
    ]
    return Chains(finer, groups, chains)


def _of_range(name: str) -> str:
    """The name of a range; of an annotation with arguments its function, "" for other annotations,
    which contain source lines and settings of modules."""
    meaning = read(name, torch_suffix=False) if name[:1] == "{" else None
    if meaning is None or meaning.kind not in _ANNOTATIONS:
        return name
    return "" if meaning.call is None else f"{meaning.call.mod}.{meaning.call.op}"


def _upwards(parent: list[int], node: int) -> list[int]:
    """A node and those around it, innermost first."""
    upwards = []
    while node >= 0:
        upwards.append(node)
        node = parent[node]
    return upwards


def _of_stacks(cells: ReportCells, rows: Bools | None) -> Chains:
    """The call stack of the forward call, as recorded, without inner frames of torch."""
    groups, stacks = _stacks(cells, rows)
    return Chains(
        cells, groups, [_all("frame", *stack) or _all("frame", NO_LINE.frame) for stack in stacks]
    )


def _of_lines(cells: ReportCells, rows: Bools | None) -> Chains:
    """The folder, file, function and number of the innermost line of the report `lines`."""
    groups, stacks = _stacks(cells, rows)
    chosen, _ = chosen_frames(cells.profile, stacks)
    sources = SourceFiles(None)
    row_of = {frame: line_row(frame, sources) for frame in {own[-1] for own in chosen if own}}
    names = Counter((row.file, row.function) for row in row_of.values())
    chain_of = {
        frame: _place(row, names[row.file, row.function] == 1) for frame, row in row_of.items()
    }
    none = _all("line", NO_LINE.frame)
    return Chains(cells, groups, [chain_of[own[-1]] if own else none for own in chosen])


def _place(row: LineRow, is_unique: bool) -> Chain:
    """Functions with one name in one file, as methods of two classes, are told by their lines."""
    folder, slash, file = (row.file or "").replace("\\", "/").rpartition("/")
    results = [("folder", folder + slash)] if slash else []
    results.append(("file", file))
    if row.function is not None:
        is_told = is_unique or not row.has_function
        results.append(("function", row.function if is_told else f"{row.function}:{row.line}"))
    if row.line is not None and not row.has_function:
        results.append(("line", f"{file}:{row.line}"))
    return tuple(results)


def _stacks(cells: ReportCells, rows: Bools | None) -> tuple[Grouping, list[list[str]]]:
    """The selected cells by call stack, and the frames of each stack, outermost first."""
    traces = texts(cells, "trace")
    groups = group([traces], len(cells), rows)
    return groups, [list(traces.at(row) or ()) for row in groups.first.tolist()]


def _all(kind: str, *names: str) -> Chain:
    return tuple((kind, name) for name in names)


CHAINS: Final[Mapping[str, Callable[[ReportCells, Bools | None], Chains]]] = {
    "layers": _of_layers,
    "path": _of_paths,
    "lines": _of_lines,
    "stack": _of_stacks,
}
"""By kind of tree: the chains of cells [cells]; the second argument selects cells, None for all."""
