"""The calls of compiled graphs that kernels of a trace are from.

A profiler records the call of a compiled graph as the range `## Call CompiledFxGraph KEY ##`. In
it, the calls of kernels are in the order of the generated code: the third call of
`triton_poi_fused_add_0` is the third in the graph. Replays of CUDA graphs outside of the range are
calls of the graph that has the same generated kernels, each as often. Where neither fits, a kernel
has the parts of all calls of its name alike. Ranges `## inductor_kernel:NAME:HANDLE ##`, which
later versions record, name the call itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _path
from fastprof._core._take import distinct, take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.regex import regex
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import SharedValues
from fastprof.model.compiled import CompiledGraph, GraphKernel
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import Trace
from fastprof.profile import gpu_work
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.compiled.parts import Share, merged, shares_of

_CALL: Final = regex(r"## Call CompiledFxGraph (\w+) ##\Z")
_KERNEL: Final = regex(r"## inductor_kernel:(.+):(\d{1,9}) ##\Z")
_PREFIX: Final = regex(r"graph_\d+_(?=cpp_)")  # of kernels on the CPU
_SUFFIX: Final = ".kd"  # of kernels of AMD GPUs


@dataclass(frozen=True)
class CompiledWork:
    """What torch.compile's artefacts tell about the kernels of a trace.

    Parameters
    ----------
    site : int32 [kernels], index into `shares`, -1 for work that they do not describe
    shares : the parts of a kernel at each site
    ambiguous : [sites] whether several calls of the kernel have this name, and none is known
    """

    site: Int32
    shares: list[tuple[Share, ...]]
    ambiguous: list[bool]


class _Calls(NamedTuple):
    """Some kernels as calls: kernels of one call have the same execution, name and place.

    Parameters
    ----------
    row : int64 [calls] the kernels
    execution : int64 [calls] a call of a compiled graph, or the launch of a CUDA graph
    label : int32 [calls] the range of that call, -1 for launches
    name : int32 [calls] index into `names`
    place : int64 [calls] ascending in the order of calls
    """

    row: Int64
    execution: Int64
    label: Int32
    name: Int32
    place: Int64


def work_of(
    trace: Trace,
    attribution: Attribution,
    short_names: SharedValues,
    graphs: Sequence[CompiledGraph],
) -> CompiledWork:
    """Find the site of each kernel.

    short_names : the names of the kernels
    """
    finder = _Sites(graphs)
    site = np.full(len(trace.kernels), -1, np.int32)
    names: dict[str, int] = {}
    calls = _calls(trace, attribution, short_names, finder.generated, names)
    _fill(site, calls, attribution, list(names), finder)
    rows = np.flatnonzero(site < 0)
    ids = take(short_names.id_of_row, short_names.rows[rows])
    used, place = distinct(ids, len(short_names.values))
    own = [finder.name_site(_plain(short_names.values[i])) if i >= 0 else -1 for i in used]
    site[rows] = np.array(own, np.int32)[place]
    _name_by_handle(site, attribution, finder)
    return CompiledWork(site, finder.shares, finder.ambiguous)


def _plain(name: str) -> str:
    return _PREFIX.sub("", name).removesuffix(_SUFFIX)


def _calls(
    trace: Trace,
    attribution: Attribution,
    short_names: SharedValues,
    generated: Iterable[str],
    names: dict[str, int],
) -> _Calls:
    """The kernels inside calls of compiled graphs and in launches of CUDA graphs.

    names : receives the ids of names
    """
    graph_of, label_of_graph = _nearest(attribution, lambda m: _CALL.match(m.name) is not None)
    operator_of, _ = _nearest(attribution, lambda m: m.kind == Kind.TORCH)
    frame, parent = attribution.frame_of_kernel, attribution.frame_parent
    inside = take(graph_of, frame)
    call = _outermost(take(operator_of, frame), operator_of, graph_of, parent, inside)
    launch = trace.kernels.launch
    replayed = (launch >= 0) & gpu_work.in_graphs(trace)[0]
    row = np.flatnonzero((inside >= 0) | replayed)
    n, n_launches = len(parent), len(trace.launches)
    execution = np.where(inside >= 0, inside, n + launch.astype(np.int64))[row]
    place = np.select(
        [(call >= 0) & ~replayed, ~replayed],
        [call.astype(np.int64), n + launch.astype(np.int64)],
        n + n_launches + np.arange(len(frame), dtype=np.int64),
    )[row]
    own = short_names.shared()
    own_id = take(own.id_of_row, own.rows[row])
    label = take(attribution.node_label, take(attribution.node_of_frame, call[row]))
    known = set(generated)
    pairs, first, back = np.unique(
        np.stack([own_id, label]), axis=1, return_index=True, return_inverse=True
    )
    ids = []
    for kernel, of_call in pairs.T.tolist():
        name = _plain(own.values[kernel]) if kernel >= 0 else ""
        if name not in known and of_call >= 0:
            name = _plain(attribution.meanings[of_call].name)
        ids.append(names.setdefault(name, len(names)))
    name_of = np.array(ids, np.int32)[back.reshape(-1)] if len(first) else np.empty(0, np.int32)
    return _Calls(row, execution, take(label_of_graph, frame)[row], name_of, place)


def _nearest(attribution: Attribution, wanted: Callable[[Meaning], bool]) -> tuple[Int32, Int32]:
    """[frames] The innermost frame at or around each whose label is wanted, and its label."""
    flags = np.array([wanted(meaning) for meaning in attribution.meanings], np.uint8)
    of_node = take(flags, attribution.node_label, 0)
    frame = _path.nearest(attribution.frame_parent, attribution.node_of_frame, of_node)
    label = take(attribution.node_label, take(attribution.node_of_frame, frame))
    return frame, label


def _outermost(
    call: Int32, operator_of: Int32, graph_of: Int32, parent: Int32, inside: Int32
) -> Int32:
    """[kernels] The outermost operator inside the call of the graph; -1 for none.

    call : [kernels] the innermost operator
    """
    call = np.where((inside >= 0) & (take(graph_of, call) == inside), call, np.int32(-1))
    while True:
        outer = take(operator_of, take(parent, call))
        further = (call >= 0) & (outer >= 0) & (take(graph_of, outer) == inside)
        if not further.any():
            return call
        call = np.where(further, outer, call).astype(np.int32)


def _fill(
    site: Int32, calls: _Calls, attribution: Attribution, names: list[str], finder: _Sites
) -> None:
    """Set the sites of kernels that are calls of a known graph."""
    if not len(calls.row):
        return
    order = np.lexsort((calls.place, calls.name, calls.execution))
    execution, name, place = calls.execution[order], calls.name[order], calls.place[order]
    is_group = _changes(execution, name)
    is_call = is_group | _changes(place)
    number = np.cumsum(is_call) - 1
    group = np.cumsum(is_group) - 1
    first = number[is_group]
    rank = number - first[group]
    count = np.diff(np.append(first, number[-1] + 1))
    kind, kinds = _kinds(calls.label[order], execution, name, is_group, count)
    graphs = [
        finder.graph(
            _key(attribution.meanings[label].name) if label >= 0 else "",
            Counter({names[i]: n for i, n in members}),
        )
        for label, members in kinds
    ]
    columns = np.stack([kind[group], name, rank.astype(np.int64), count[group]])
    distinct, back = np.unique(columns, axis=1, return_inverse=True)
    of = []
    for which, of_name, at, n in distinct.T.tolist():
        graph = graphs[which]
        of.append(-1 if graph is None else finder.call_site(graph, names[of_name], at, n))
    site[calls.row[order]] = np.array(of, np.int32)[back.reshape(-1)]


def _changes(*columns: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Whether a row differs from the one before."""
    result = np.ones(len(columns[0]), bool)
    result[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return result


def _kinds(
    label: Int32,
    execution: Int64,
    name: Int32,
    is_group: npt.NDArray[np.bool_],
    count: Int64,
) -> tuple[Int64, list[tuple[int, list[tuple[int, int]]]]]:
    """The kind of the execution of each group (a name in an execution), and of each kind the label
    and the names with their counts. Executions of a kind agree in all of these.

    count : [groups] calls
    """
    rows = np.flatnonzero(is_group)
    starts = np.flatnonzero(_changes(execution[rows]))
    mixed = name[rows].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + count.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    total = np.add.reduceat(mixed ^ (mixed >> np.uint64(32)), starts)
    _, first, kind = np.unique(
        np.stack([label[rows[starts]].astype(np.int64).view(np.uint64), total]),
        axis=1, return_index=True, return_inverse=True,
    )  # fmt: skip
    ends = np.append(starts[1:], len(rows))
    kinds = []
    for at in first.tolist():
        members = slice(starts[at], ends[at])
        pairs = zip(name[rows[members]].tolist(), count[members].tolist(), strict=True)
        kinds.append((int(label[rows[starts[at]]]), list(pairs)))
    return np.repeat(kind.reshape(-1), ends - starts), kinds


def _key(name: str) -> str:
    match = _CALL.match(name)
    return "" if match is None else match[1]


def _name_by_handle(site: Int32, attribution: Attribution, finder: _Sites) -> None:
    """Set the sites of kernels in ranges that name the call."""
    frame, label = _nearest(attribution, lambda m: _KERNEL.match(m.name) is not None)
    if (frame < 0).all():
        return
    of_kernel = take(label, attribution.frame_of_kernel)
    for number in np.unique(of_kernel[of_kernel >= 0]).tolist():
        match = _KERNEL.match(attribution.meanings[number].name)
        if match is not None:
            result = finder.handle_site(match[1], int(match[2]))
            if result >= 0:
                site[of_kernel == number] = result


class _Sites:
    """Numbers the distinct calls of compiled graphs.

    Attributes
    ----------
    generated : the names of generated kernels
    shares, ambiguous : see `CompiledWork`
    """

    def __init__(self, graphs: Sequence[CompiledGraph]) -> None:
        self._graphs = graphs
        self._by_key = {graph.key: graph for graph in graphs if graph.key}
        self._number: dict[tuple[int, str, int], int] = {}
        self.shares: list[tuple[Share, ...]] = []
        self.ambiguous: list[bool] = []
        self._calls: dict[str, list[tuple[CompiledGraph, GraphKernel]]] = {}
        for graph in graphs:
            for kernel in graph.kernels:
                self._calls.setdefault(kernel.name, []).append((graph, kernel))
        self.generated = {name for name in self._calls if "::" not in name}

    def graph(self, key: str, names: Counter[str]) -> CompiledGraph | None:
        """The graph with a key; else the first that calls generated kernels with these names."""
        if key in self._by_key:
            return self._by_key[key]
        own = _generated(names)
        fitting = (graph for graph in self._graphs if own and own == _generated(_names(graph)))
        return next(fitting, None)

    def call_site(self, graph: CompiledGraph, name: str, rank: int, count: int) -> int:
        """The site of a call of a name in a graph: the one at `rank` of `count`; -1 for none."""
        kernels = [kernel for kernel in graph.kernels if kernel.name == name]
        if len(kernels) != count:
            calls = [(graph, kernel) for kernel in kernels]
            return self._site((id(graph), name, -1), calls)
        return self._site((id(graph), name, rank), [(graph, kernels[rank])])

    def name_site(self, name: str) -> int:
        """The site of a generated kernel of a name; -1 for none."""
        return self._site((0, name, -1), self._calls[name]) if name in self.generated else -1

    def handle_site(self, name: str, handle: int) -> int:
        """The site of a call with a handle; -1 for none."""
        calls = [
            (graph, kernel)
            for graph, kernel in self._calls.get(name, ())
            if kernel.handle == handle
        ]
        return self._site((0, name, handle), calls)

    def _site(
        self, key: tuple[int, str, int], calls: Sequence[tuple[CompiledGraph, GraphKernel]]
    ) -> int:
        if key not in self._number:
            each = [shares for call in calls if (shares := shares_of(*call))]
            shares = each[0] if len(each) == 1 else merged(share for own in each for share in own)
            self._number[key] = len(self.shares) if shares else -1
            if shares:
                self.shares.append(shares)
                self.ambiguous.append(len(set(each)) > 1)
        return self._number[key]


def _names(graph: CompiledGraph) -> Counter[str]:
    return Counter(kernel.name for kernel in graph.kernels)


def _generated(names: Counter[str]) -> Counter[str]:
    return Counter({name: n for name, n in names.items() if "::" not in name})
