"""GPU time as a tree of layers, call paths, source lines or call stacks, and sums over its nodes.

The tree behind icicles, flame graphs and exports of collapsed stacks. Its sums are exact: a node
contains its own kernels and those of its children, the root all selected kernels.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _path
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof._system.threads import computed_once
from fastprof.analysis.cells import cells_of
from fastprof.analysis.grouping import group, numbers
from fastprof.analysis.keys import key_of
from fastprof.analysis.registry import Where
from fastprof.analysis.roofline.ideal import ideals_of
from fastprof.analysis.roofline.utilisation import devices_with
from fastprof.analysis.saturated import across, in_subtrees, scattered
from fastprof.analysis.selection import selected
from fastprof.analysis.stacks.chains import CHAINS, Chains
from fastprof.analysis.stacks.sums import in_part, path_sums
from fastprof.analysis.summary.measures import ratio
from fastprof.errors import ReportError
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Values
from fastprof.model.heading import unknown_name
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.phases import BACKWARD, FORWARD

Numbers = npt.NDArray[Any]

TREES: Final = tuple(CHAINS)
"""The kinds of trees: layers, path, lines, stack."""
MEASURES: Final = ("ns", "step_ns", "lost_ns", "flops", "bytes", "kernels", "calls")
_LEAVES: Final[Mapping[str, tuple[str, ...]]] = {
    "layers": ("op", "kernel"),
    "path": ("kernel",),
    "lines": ("op", "kernel"),
    "stack": ("op", "kernel"),
}
_SMALLER: Final = "smaller"
_COLORS: Final = ("phase", "kind")
_SUMS: Final = (
    *("gpu_ns", "steps_ns", "kernels", "flops", "n_flops", "bytes", "n_bytes"),
    *("lost_ns", "n_roof"),
)


@dataclass(frozen=True, eq=False)
class Stacks:
    """A tree of GPU time.

    Row 0 is the root. Parents precede their children; siblings are in order of their first kernel
    on the GPU.

    Parameters
    ----------
    parent : int32 [n], -1 for the root
    name : Values [n], texts; siblings of equal type have different names
    type : Values [n]: `all` for the root; layer; for call paths operator, annotation, layer, user,
        python or range; folder, file, function, line; frame; op, kernel or another grouping key;
        `smaller` for merged nodes
    sums : for each node and direction, sums over its own kernels [n, 3], without its children's;
        names as in `path_sums.Sums`; n_* count the cells with a known value
    n_windows : the counted steps, each times the GPUs of its process; 0 if steps are unknown
    dominant : for `phase` and `kind`, the value [n] that takes at least half of the GPU time inside
        each node; unknown if none does
    """

    parent: Int32
    name: Values
    type: Values
    sums: Mapping[str, Numbers]
    n_windows: int
    dominant: Mapping[str, Values]

    def __len__(self) -> int:
        return len(self.parent)

    def own(self, measure: str, direction: str | None = None) -> Numbers:
        """[n] A measure of the kernels of each node without those of its children.

        int64, -1 if unknown; step_ns and lost_ns are float64, NaN if unknown. lost_ns is the
        GPU time of calls above their ideal time, where it is known. A call of an operator
        counts where its first kernel is, and not by kernel: the node of a kernel has none.

        Parameters
        ----------
        measure : of MEASURES
        direction : of DIRECTIONS; None for all
        """
        return self._measure(self.sums.__getitem__, measure, direction)

    def inclusive(self, measure: str, direction: str | None = None) -> Numbers:
        """[n] A measure of each node with all nodes inside it; see `own`."""
        return self._measure(self._inclusive_of, measure, direction)

    def chain(self, row: int) -> list[str]:
        """The names from below the root to a node."""
        results: list[str] = []
        while row > 0:
            results.append(self.name.at(row))
            row = int(self.parent[row])
        return results[::-1]

    @computed_once
    def _inclusive(self) -> dict[str, Numbers]:
        """The sums that were asked for."""
        return {}

    def _inclusive_of(self, name: str) -> Numbers:
        if name not in self._inclusive:
            self._inclusive[name] = in_subtrees(self.parent, self.sums[name])
        return self._inclusive[name]

    def _measure(
        self, sums: Callable[[str], Numbers], measure: str, direction: str | None
    ) -> Numbers:
        def of(name: str) -> Numbers:
            values = sums(name)
            return across(values) if direction is None else values[:, DIRECTIONS.index(direction)]

        if measure == "ns":
            return of("gpu_ns")
        if measure == "kernels":
            return of("kernels")
        if measure == "calls":
            return np.where(of("calls") > 0, of("calls"), -1)
        if measure == "step_ns":
            return ratio(of("steps_ns"), np.full(len(self), self.n_windows))
        if measure == "lost_ns":
            return np.where(of("n_roof") > 0, of("lost_ns"), np.nan)
        if measure in ("flops", "bytes"):
            return np.where(of(f"n_{measure}") > 0, of(measure), -1)
        raise ReportError(unknown_name("measure", measure, MEASURES))

    def pruned(self, share: float = 1e-5) -> Stacks:
        """A tree in which siblings with less than a share of all GPU time are one node each.

        It is named `(n smaller)`, after the number of siblings, and has no children.
        """
        time = in_subtrees(self.parent, across(self.sums["gpu_ns"]))  # `inclusive` sums all
        kept = time >= share * time[0]
        above = np.maximum(self.parent, 0)
        outermost = ~kept & kept[above]
        parents, merged, counts = np.unique(
            above[outermost], return_inverse=True, return_counts=True
        )
        place = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        n_kept = int(kept.sum())
        into = place.copy()
        into[outermost] = n_kept + merged
        into = _path.innermost(self.parent, into)
        n = n_kept + len(parents)

        def with_merged(values: Values, added: list[str]) -> Values:
            ids = np.arange(len(added), dtype=np.int32) + np.int32(len(values.values))
            return Values(np.concatenate([values.ids[kept], ids]), [*values.values, *added])

        unknown = np.full(len(parents), -1, np.int32)
        return Stacks(
            np.concatenate([take(place, self.parent[kept]), place[parents]]),
            with_merged(self.name, [f"({count} smaller)" for count in counts.tolist()]),
            with_merged(self.type, [_SMALLER] * len(parents)),
            {name: scattered(own, into, (n, len(DIRECTIONS))) for name, own in self.sums.items()},
            self.n_windows,
            {
                name: Values(np.concatenate([values.ids[kept], unknown]), values.values)
                for name, values in self.dominant.items()
            },
        )


def stacks(
    profile: ProfileData,
    kind: str = "layers",
    leaves: Sequence[str] | None = None,
    where: Where | None = None,
    steps: str | None = None,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Stacks:
    """The tree of GPU time by layers, call paths, source lines or call stacks.

    Parameters
    ----------
    kind : "layers", as in the report `layers`: backward and recomputed work counts to the layers of
        its forward call; "path", the ranges around the call, `Profile.paths` with folded names,
        annotations of calls as `torch.nn.functional.linear`, other annotations omitted;
        "lines", folder, file, function and number of the innermost line of the report `lines`;
        "stack", the call stack of the forward call, outermost first
    leaves : grouping keys below these; by default op and kernel, for "path" kernel. A level is
        omitted where the key is unknown.
    where : see `fastprof.analysis.selection`
    steps : what a step is, see `Profile.find_steps`
    gpu, peak, bandwidth : see `fastprof.model.devices.with_figures`

    Raises
    ------
    ReportError
        The kind, a key, GPU or figure is unknown.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    """
    if kind not in CHAINS:
        raise ReportError(unknown_name("kind of stacks", kind, TREES))
    keys = _LEAVES[kind] if leaves is None else tuple(leaves)
    devices = devices_with(profile, gpu, peak, bandwidth)
    kernels, cells = profile.find_steps(steps), cells_of(profile, keys, where)
    chains = CHAINS[kind](cells, selected(cells, where))
    nodes = Nodes(chains, keys)
    of_groups = path_sums(
        chains.cells, nodes.groups, kernels, ideals_of(chains.cells, devices), has_calls=False
    )
    sums, n_windows = nodes.sums(of_groups.only(*_SUMS).of), of_groups.n_windows
    del of_groups  # with the other sums
    dominant = {name: nodes.dominant(name) for name in _COLORS}
    return Stacks(nodes.parent, nodes.name, nodes.type, sums, n_windows, dominant)


DIRECTIONS: Final = (FORWARD, BACKWARD, "other")
_ROOT: Final = ("all", "all")
# Keys in which the kernels of a call agree.
_OF_CALLS: Final = frozenset({"op", "mod", "shape", "dtype", "line", "layer", "dir"})


class Nodes:
    """The nodes of chains and of the keys below them, in order of the first kernel of each.

    Parameters
    ----------
    chains : the chain of each cell
    leaves : grouping keys

    Attributes
    ----------
    parent : int32 [n]; row 0 is the root, -1
    type, name : Values [n]
    groups : the selected cells of equal node and direction; several groups may have the same
    """

    def __init__(self, chains: Chains, leaves: Sequence[str]) -> None:
        """Make the nodes."""
        self._cells = cells = chains.cells
        keys = [key_of(cells, name) for name in leaves]
        direction = np.full(len(cells), DIRECTIONS.index("other"), np.int32)
        for part in (FORWARD, BACKWARD):
            direction[in_part(cells, part)] = DIRECTIONS.index(part)
        chain = Values(chains.groups.ids, [None] * chains.groups.n)
        by = [chain, *keys, Values(direction, list(DIRECTIONS))]
        self.groups = group(by, len(cells), chains.groups.ids >= 0)
        first = self.groups.first
        order = np.argsort(first)
        self._direction, first = direction[first], first[order]

        tree, of_chain = NodeTree(), array("i", [-1]) * chains.groups.n
        rows, rows_of_calls = array("i"), array("i")
        n_of_calls = len(list(takewhile(_OF_CALLS.__contains__, leaves)))
        texts = [_labels(name, key.take(first)) for name, key in zip(leaves, keys, strict=True)]
        for own, *labels in zip(chain.ids[first].data, *texts, strict=True):
            if of_chain[own] < 0:
                of_chain[own] = tree.inside(0, chains.chains[own])
            rows_of_calls.append(tree.inside(of_chain[own], labels[:n_of_calls]))
            rows.append(tree.inside(rows_of_calls[-1], labels[n_of_calls:]))
        del texts, of_chain
        self.parent, self.type, self.name = tree.columns()
        del tree
        self._rows, self._rows_of_calls = np.empty((2, len(order)), np.int32)
        self._rows[order], self._rows_of_calls[order] = rows, rows_of_calls

    def sums(self, of_groups: Mapping[str, Numbers]) -> OwnSums:
        """Numbers [groups] by node and direction, and `calls`: the calls of operators, each at its
        first kernel; nodes below them have none."""
        has_calls = "call" in self._cells.names
        begun = self._begun() if has_calls else np.zeros(len(self._rows), np.int64)
        of = {name: (values, self._rows) for name, values in of_groups.items()}
        of["calls"] = begun, self._rows_of_calls
        return OwnSums(of, self._direction, len(self.parent))

    def _begun(self) -> Int64:
        """[groups] How many calls have their first kernel in each group."""
        if self._cells.is_coarsest and (self.groups.ids >= 0).all():
            return self.groups.stats(kept(self._cells.profile, _begun)).sum
        group = take(self.groups.ids, self._cells.of_kernel)
        return _first(np.where(group >= 0, _calls(self._cells.profile), -1), group, self.groups.n)

    def dominant(self, key: str) -> Values:
        """[n] The value of a key with at least half of the GPU time inside each node."""
        values = key_of(self._cells, key)
        row = take(self._rows, self.groups.ids)
        time = np.where(row >= 0, np.maximum(numbers(self._cells, "sil"), 0), 0)
        n = len(self.parent)
        most, total, best = np.full(n, -1, np.int32), np.zeros(n), np.full(n, -1.0)
        for number in range(-1, len(values.values)):  # one at a time: there may be many nodes
            cells = np.flatnonzero((values.ids == number) & (row >= 0))
            inside = in_subtrees(self.parent, scattered(time[cells], row[cells], (n,)))
            most[inside > best] = number
            total += inside
            np.maximum(best, inside, out=best)
        return Values(np.where(2 * best >= total, most, np.int32(-1)), values.values)


class OwnSums(Mapping[str, Numbers]):
    """Numbers of nodes and directions, [n, 3] by name, added up on each use: together, they take
    several times the memory of what they are sums of.

    Parameters
    ----------
    of : the numbers [groups], and the node [groups] that each counts to, by name
    direction : [groups]
    n_nodes : n
    """

    def __init__(
        self, of: Mapping[str, tuple[Numbers, Int32]], direction: Int32, n_nodes: int
    ) -> None:
        self._of, self._direction, self._n_nodes = of, direction, n_nodes

    def __getitem__(self, name: str) -> Numbers:
        values, rows = self._of[name]
        return scattered(values, (rows, self._direction), (self._n_nodes, len(DIRECTIONS)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)


def _calls(profile: ProfileData) -> Int32:
    calls: Int32 = numbers(profile, "call")
    return calls


def _begun(profile: ProfileData) -> Int64:
    """[cells] How many calls have their first kernel in each cell of a profile."""
    base = profile.source.cells
    return _first(_calls(profile), base.of_kernel, len(base))


def _first(call: Int32, group: Int32, n_groups: int) -> Int64:
    """[groups] How many calls have their first kernel in each group.

    call, group : int32 [kernels], -1 for none
    """
    first = np.full(int(call.max(initial=-1)) + 2, -1, np.int32)  # the last for those without
    first[call[::-1]] = group[::-1]  # the last one assigned is that of the first kernel
    return np.bincount(first[:-1] + 1, minlength=n_groups + 1)[1:].astype(np.int64)


class NodeTree:
    """A tree of (type, name), parents before their children."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, tuple[str, str]], int] = {(-1, _ROOT): 0}

    def inside(self, row: int, labels: Iterable[tuple[str, str] | None]) -> int:
        """The node of a chain below a node; unknown labels are omitted."""
        for label in labels:
            if label is not None:
                row = self._rows.setdefault((row, label), len(self._rows))
        return row

    def columns(self) -> tuple[Int32, Values, Values]:
        """Parent, type and name of each node."""
        parent = np.array([above for above, _ in self._rows], np.int32)
        kinds = _repeated((kind for _, (kind, _) in self._rows), len(parent))
        return parent, kinds, _repeated((name for _, (_, name) in self._rows), len(parent))


def _repeated(texts: Iterable[str], n: int) -> Values:
    ids: dict[str, int] = {}
    result = np.fromiter((ids.setdefault(text, len(ids)) for text in texts), np.int32, n)
    return Values(result, list(ids))


def _labels(name: str, key: Values) -> list[tuple[str, str] | None]:
    """[n] Key and value; None where unknown."""
    labels = [None if value is None else (name, str(value)) for value in key.values]
    return [None if number < 0 else labels[number] for number in key.ids.tolist()]
