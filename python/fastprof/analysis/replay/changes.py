"""The changes that a user names, in the order in which they apply, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis.advice.calls import sizes
from fastprof.analysis.cells import cells_of
from fastprof.analysis.grouping import Floats64, numbers, texts
from fastprof.analysis.host.states import State
from fastprof.analysis.key_names import condition
from fastprof.analysis.keys import key_of
from fastprof.analysis.recorder import stretches_loading, unrecorded_step
from fastprof.analysis.replay.columns import scaling
from fastprof.analysis.replay.graph import CALL, RETURN, WORK, pids_of
from fastprof.analysis.replay.host_time import HostTime
from fastprof.analysis.replay.model import Model, rounded
from fastprof.analysis.replay.path import path_of
from fastprof.analysis.replay.runs import NO_EDGE, Weights
from fastprof.analysis.roofline.ideal import PRODUCTS, Ideals, ideals_of
from fastprof.analysis.selection import selected
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools, Int32, Int64, unique
from fastprof.model.columns import Values
from fastprof.model.devices import Device
from fastprof.model.heading import unknown_name
from fastprof.profile.api_classes import COPY_CALL, SYNC
from fastprof.profile.steps.kernel_steps import StepsOfKernels

if TYPE_CHECKING:
    from fastprof.analysis.replay.other_gpu import OtherGpu


@dataclass(frozen=True)
class Change:
    """A change of a run.

    Parameters
    ----------
    name : as on the command line, without `--`
    apply : (model, weights) -> new weights, and how many kernels or host calls differ
    at_most : the same at the other end of an interval; None for a change of one length
    """

    name: str
    apply: Callable[[Model, Weights], tuple[Weights, int]]
    at_most: Callable[[Model, Weights], tuple[Weights, int]] | None = None


def changes_of(
    options: Mapping[str, Any], devices: Mapping[int, Device], roof: str
) -> list[Change]:
    """The changes of the options of `whatif`: types and shapes first, then times, then the host."""
    return list(_changes(options, devices, roof))


def _changes(
    options: Mapping[str, Any], devices: Mapping[int, Device], roof: str
) -> Iterator[Change]:
    if options.get("on"):
        other: OtherGpu = options["on"]
        low, high = (_on(other, end) for end in ("low", "high"))
        yield Change(f"on {other.name}", low, high)
        devices = dict.fromkeys(devices, other.device)
    if options.get("dtype"):
        name = options["dtype"]
        yield Change(f"dtype {name}", lambda m, w: in_type(m, w, devices, name))
    if options.get("pad"):
        n = options["pad"]
        yield Change(f"pad {n}", lambda m, w: padded(m, w, devices, n))
    for text in _listed(options.get("ideal")):
        yield Change(f"ideal {text}", _ideal(text, devices, roof))
    for word in _listed(options.get("fuse")):
        yield Change(f"fuse {word}", _selected(word, fused))
    for each in _listed(options.get("overlap")):
        yield Change(f"overlap {each}", _selected(each, overlapped))
    for each in _listed(options.get("scale")):
        yield Change(f"scale {each}", _scale(each))
    for each in _listed(options.get("remove")):
        yield Change(f"remove {each}", _selected(each, removed))
    if options.get("graph"):
        yield Change("graph", as_graph)
    if options.get("no_sync"):
        yield Change("no-sync", without_sync)
    if options.get("no_data_loading"):
        yield Change("no-data-loading", without_loading)


def _listed(value: str | Sequence[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _selected(
    selector: str, change: Callable[..., tuple[Weights, int]]
) -> Callable[[Model, Weights], tuple[Weights, int]]:
    return lambda model, weights: change(model, weights, kernels_of(model, selector))


def _ideal(
    selector: str, devices: Mapping[int, Device], roof: str
) -> Callable[[Model, Weights], tuple[Weights, int]]:
    def apply(model: Model, weights: Weights) -> tuple[Weights, int]:
        return at_ideal(model, weights, kernels_of(model, selector), devices, roof)

    return apply


def _on(other: OtherGpu, end: str) -> Callable[[Model, Weights], tuple[Weights, int]]:
    """end : "low" or "high", of the interval"""

    def apply(model: Model, weights: Weights) -> tuple[Weights, int]:
        factor: Floats64 = getattr(other.spans(model.cells), end)
        every = np.ones(len(model.profile), bool)
        return scaled(model, weights, every, take(factor, model.cells.of_kernel))

    return apply


def _scale(text: str) -> Callable[[Model, Weights], tuple[Weights, int]]:
    selector, factor = scaling(text)

    def apply(model: Model, weights: Weights) -> tuple[Weights, int]:
        if selector == "host":
            return host_scaled(model, weights, factor)
        return scaled(model, weights, kernels_of(model, selector), factor)

    return apply


TOGETHER: Final = "all together"
_STEPS: Final = 8  # whose critical paths are examined


class Answer(NamedTuple):
    """What a change does.

    Parameters
    ----------
    name : of the change
    wall : mean length of a step, ns
    saved : ns
    binds, binds_share : the resource with most of the critical path, and its share
    changed : kernels or host calls that the change concerns
    host : the share of the critical path that the host decides
    """

    name: str
    wall: float
    saved: float
    binds: str
    binds_share: float
    changed: int
    host: float = 0.0


def answers_of(
    model: Model, changes: Sequence[Change], start: Calibrated
) -> tuple[list[Answer], list[Weights]]:
    """Each change alone, then all together if there are several; and the weights of these.

    A change that is an interval has an answer for each end, as all together then have; the
    weights are those of both ends.

    start : the run without changes
    """
    results: list[Answer] = []
    totals = [start.weights] * max((len(_ends(change)) for change in changes), default=1)
    n_total = 0
    for i, change in enumerate(changes):
        alone = [apply(model, start.weights) for apply in _ends(change)]
        for name, (weights, n) in zip(_named(change.name, len(alone)), alone, strict=True):
            results.append(_answer(model, name, weights, n, start.wall))
        if i == 0:
            totals = [alone[end % len(alone)][0] for end in range(len(totals))]
        else:
            totals = [
                _ends(change)[end % len(alone)](model, total)[0] for end, total in enumerate(totals)
            ]
        n_total += alone[0][1]
    if len(changes) > 1:
        for name, total in zip(_named(TOGETHER, len(totals)), totals, strict=True):
            results.append(_answer(model, name, total, n_total, start.wall))
    return results, totals


def _ends(change: Change) -> list[Callable[[Model, Weights], tuple[Weights, int]]]:
    return [change.apply, *([change.at_most] if change.at_most else [])]


def _named(name: str, n_ends: int) -> list[str]:
    """The name of a change at each end of its interval."""
    return [name] if n_ends == 1 else [f"{name}: at least", f"{name}: at most"]


def _answer(model: Model, name: str, weights: Weights, n: int, base: float) -> Answer:
    replayed = model.run(weights)
    wall = model.mean(replayed.wall)
    path = path_of(model, replayed, _STEPS)
    return Answer(name, wall, base - wall, *path.binds(), n, path.host_share())


def kernels_of(model: Model, selector: str) -> Bools:
    """[kernels] Those that a selector KEY=PATTERN or KEY!=PATTERN fits.

    Raises
    ------
    ReportError
        The selector is malformed, its key is unknown, or no kernel fits; the message names the
        nearest.
    """
    cells = cells_of(model.whole, (), [selector])
    result = selected(cells, [selector])
    if result is None or not result.any():
        name, _, pattern = condition(selector)
        values = [str(value) for value in key_of(cells, name).values]
        if not values:
            raise ReportError(f"{selector}: {name} is not recorded in {model.whole.name}")
        raise ReportError(f"{selector}: {unknown_name(name, pattern, values)}")
    return cells.flags(result)


_BYTES: Final = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1}
_WIDE: Final = frozenset({"fp32", "tf32"})
_NARROW: Final = frozenset({"fp16", "bf16"})


def scaled(
    model: Model, weights: Weights, kernels: Bools, factor: float | Floats64
) -> tuple[Weights, int]:
    """Durations times a factor, one or [kernels chosen]; of collectives, the transfer only."""
    ns = model.graph.node_of_kernel[np.flatnonzero(kernels)]
    return _with_durations(weights, ns, weights.duration[ns] * factor)


def at_ideal(
    model: Model, weights: Weights, kernels: Bools, devices: Mapping[int, Device], roof: str
) -> tuple[Weights, int]:
    """Kernels of known cost at the roofline: helpers take no time, none takes longer.

    Raises
    ------
    ReportError
        No cost or peak of these kernels is known.
    """
    ideals = ideals_of(model.cells, devices, roof)
    rows = np.flatnonzero(kernels & take(ideals.is_counted, model.cells.of_kernel, False))
    if not len(rows):
        raise ReportError(
            "ideal: no cost or peak of these kernels is known; record shapes, or give "
            "--gpu, or --peak and --bandwidth"
        )
    nodes = model.graph.node_of_kernel[rows]
    ideal = np.minimum(_ideal_ns(model, ideals)[rows], weights.duration[nodes])
    return _with_durations(weights, nodes, ideal)


def in_type(
    model: Model, weights: Weights, devices: Mapping[int, Device], name: str
) -> tuple[Weights, int]:
    """Products of fp32 matrices in another type: by the ratio of the peaks, down to the bandwidth.

    Raises
    ------
    ReportError
        The peak of the type is unknown.
    """
    rows = _products(model, _WIDE - {name})
    device = numbers(model.profile, "device")[rows]
    types, cores = (texts(model.profile, text) for text in ("compute_type", "tc"))
    moved = np.maximum(numbers(model.profile, "bytes")[rows], 0)
    factor, floor = np.ones(len(rows)), np.zeros(len(rows))
    for number, gpu in devices.items():
        own = device == number
        new = gpu.peak(name, True)
        if new is None:
            raise ReportError(f"dtype: no peak of {name} known for GPU {number}: --peak {name}=N")
        for word in _WIDE - {name}:
            old = gpu.peak(word, word == "tf32")
            some = own & _is_one_of(types, {word})[rows]
            factor[some] = 1.0 if old is None else min(old / new, 1.0)
        size = _BYTES[name] / _BYTES["fp32"]
        floor[own] = moved[own] * size / gpu.bandwidth * 1e9 if gpu.bandwidth else 0.0
    uses = (_is_one_of(cores, {"1"}) & ~_is_one_of(types, {"tf32"}))[rows]
    rows, factor, floor = rows[~uses], factor[~uses], floor[~uses]
    nodes = model.graph.node_of_kernel[rows]
    time = weights.duration[nodes]
    return _with_durations(weights, nodes, np.minimum(np.maximum(time * factor, floor), time))


def padded(
    model: Model, weights: Weights, devices: Mapping[int, Device], multiple: int
) -> tuple[Weights, int]:
    """16-bit products that use no tensor cores, with M, N and K padded to a multiple."""
    rows = _products(model, _NARROW)
    rows = rows[_is_one_of(texts(model.profile, "tc"), {"0"})[rows]]
    more = texts(model.profile, "params").mapped(lambda text: text)
    growth = np.array([*(_growth(str(value), multiple) for value in more.values), 1.0])[more.ids]
    rows = rows[growth[rows] > 1.0]
    factor = growth[rows]
    device = numbers(model.profile, "device")[rows]
    types = texts(model.profile, "compute_type")
    for number in unique(device).tolist():
        gpu = devices.get(number, Device(None))
        for name in _NARROW:
            old, new = gpu.peak(name, False), gpu.peak(name, True)
            some = _is_one_of(types, {name})[rows] & (device == number)
            factor[some] *= min(old / new, 1.0) if old and new else 1.0
    nodes = model.graph.node_of_kernel[rows]
    return _with_durations(weights, nodes, weights.duration[nodes] * np.minimum(factor, 1.0))


def _growth(params: str, multiple: int) -> float:
    """How many times the FLOPs of a product grow if its sizes are padded."""
    result = 1.0
    given = sizes(params)
    for name in "MNK":
        if given.get(name):
            result *= -(-given[name] // multiple) * multiple / given[name]
    return result


def _products(model: Model, types: frozenset[str]) -> Int64:
    """Kernels of products with one of these compute types."""
    kinds, of_type = (texts(model.profile, text) for text in ("class", "compute_type"))
    fits = _is_one_of(kinds, PRODUCTS) & _is_one_of(of_type, types)
    return np.flatnonzero(fits & (numbers(model.profile, "helper") != 1))


def _is_one_of(column: Values, wanted: Collection[str]) -> Bools:
    """[rows] Whether a column has one of these values."""
    return column.fits(lambda value: value in wanted)


def _ideal_ns(model: Model, ideals: Ideals) -> Floats64:
    """[kernels] The ideal time; 0 for helpers."""
    flops, moved = (np.maximum(numbers(model.profile, text), 0) for text in ("flops", "bytes"))
    of_kernel = model.cells.of_kernel
    result: Floats64 = flops * ideals.per_flop[of_kernel] + moved * ideals.per_byte[of_kernel]
    result[numbers(model.profile, "helper") == 1] = 0.0
    return result


def _with_durations(
    weights: Weights, nodes: Int32, ns: npt.NDArray[np.floating[Any]]
) -> tuple[Weights, int]:
    """The same with other durations, and how many nodes differ."""
    result = weights.changed(duration=True)
    result.duration[nodes] = rounded(ns)
    return result, len(nodes)


def overlapped(model: Model, weights: Weights, kernels: Bools) -> tuple[Weights, int]:
    """Some work on a stream of its own: results come in time, from or for another step.

    It keeps its time, its launches, and what it waits for, but for copies to the GPU the work
    before them on their stream: it follows itself. So a step is as long as this work takes, and as
    the rest takes: overlap saves at most the shorter of both, and what the GPU is idle.
    """
    rows = np.flatnonzero(kernels)
    if not len(rows):
        return weights, 0
    first, second, third = weights.source
    edges = _Edges((first, second.copy(), third.copy()), weights.changed(lag=True).lag)
    chosen = np.zeros(len(model.graph), bool)
    chosen[model.graph.node_of_kernel[rows]] = True
    before = _not_chosen_before(model, weights, chosen)
    _detach_others(model, weights, chosen, before, edges)
    _chain(model, rows, before, edges)
    return replace(weights, source=edges.source, lag=edges.lag), len(rows)


class _Edges(NamedTuple):
    """The edges that change, as in Weights."""

    source: tuple[Int32, Int32, Int32]
    lag: tuple[Int32, Int32, Int32]


def _not_chosen_before(model: Model, weights: Weights, chosen: Bools) -> Int32:
    """[nodes] Itself; of chosen work, the last other work before it on its stream; 0: none."""
    result = np.arange(len(chosen), dtype=np.int32)
    nodes = np.flatnonzero(chosen)
    known = weights.lag[1][nodes] != NO_EDGE
    result[nodes] = np.where(known, weights.source[1][nodes] // 2, 0)
    while chosen[result].any():
        result = result[result]
    return result


def _detach_others(
    model: Model, weights: Weights, chosen: Bools, before: Int32, edges: _Edges
) -> None:
    """What waits for chosen work waits for the work before it; of a collective that waits for
    other ranks, for their arrival, which no overlap makes earlier."""
    kind, (source, lag) = model.graph.kind, edges
    for slot in (1, 2):
        waits = (lag[slot] != NO_EDGE) & chosen[source[slot] // 2] & ~chosen
        nodes = np.flatnonzero(waits & ((kind == WORK) | (kind == RETURN)))
        instead = before[source[slot][nodes] // 2]
        # Work with no other edge stays where it is.
        alone = (
            (kind[nodes] == WORK) & (lag[0][nodes] == NO_EDGE) & (lag[3 - slot][nodes] == NO_EDGE)
        )
        nodes, instead = nodes[(instead > 0) | ~alone], instead[(instead > 0) | ~alone]
        late = source[slot][nodes] // 2
        is_late = take(model.waits_for_ranks, model.graph.kernel[late], False)
        is_late &= weights.before[late] > 0
        source[slot][nodes] = np.where(is_late, 2 * late, np.where(instead > 0, 2 * instead + 1, 0))
        lag[slot][nodes] = np.where(
            is_late, 0, np.where(instead > 0, np.minimum(lag[slot][nodes], 0), NO_EDGE)
        )


def _chain(model: Model, rows: Int64, before: Int32, edges: _Edges) -> None:
    """Chosen work follows the work of its class on its stream, chosen or not: it hides behind
    other classes. Unless it copies to the GPU, it also follows the other work before it."""
    source, lag = edges
    nodes = model.graph.node_of_kernel[rows]
    uploads = texts(model.profile, "copy_direction").fits(lambda each: str(each) == "HtoD")[rows]
    follows = nodes[~uploads & (lag[2][nodes] == NO_EDGE) & (before[nodes] > 0)]
    source[2][follows] = 2 * before[follows] + 1
    lag[2][follows] = np.minimum(lag[1][follows], 0)
    last, node = _successive(model, unique(model.kernel_class[rows]))
    chosen = np.zeros(len(model.graph), bool)
    chosen[nodes] = True
    after = model.recorded[2 * node] - model.base.before[node] - model.recorded[2 * last + 1]
    after = np.clip(after, -np.iinfo(np.int32).max, 0)
    lag[1][nodes] = NO_EDGE
    for slot, own in (
        (1, chosen[node]),
        (2, ~chosen[node] & chosen[last] & (lag[2][node] == NO_EDGE)),
    ):
        source[slot][node[own]] = 2 * last[own] + 1
        lag[slot][node[own]] = after[own]


def _successive(model: Model, classes: Int32) -> tuple[Int32, Int32]:
    """The nodes of work of some classes on a stream, and of the next such work."""
    rows = np.flatnonzero(np.isin(model.kernel_class, classes))
    keys = [pids_of(model.profile)[rows]]
    keys += [numbers(model.profile, name)[rows] for name in ("device", "stream")]
    order = np.lexsort((rows, *keys))
    same = np.ones(max(len(rows) - 1, 0), bool)
    for key in keys:
        same &= key[order[1:]] == key[order[:-1]]
    nodes = model.graph.node_of_kernel[rows[order]]
    return nodes[:-1][same], nodes[1:][same]


_ROUNDING_NS: Final = 1000  # recorded times of successive work may overlap by so much


def host_scaled(model: Model, weights: Weights, factor: float) -> tuple[Weights, int]:
    """The host's own time and calls times a factor; time in a `State` keeps its length."""
    nodes = np.flatnonzero(model.graph.kind == CALL)
    result = weights.changed(before=True, duration=True)
    in_calls = model.host_time.own.sums(len(model.graph), weights.left)
    for ns, rest in ((result.before, model.in_states(weights)), (result.duration, in_calls)):
        fixed = np.minimum(rest[nodes], np.maximum(ns[nodes], 0))
        ns[nodes] = fixed + rounded((ns[nodes] - fixed) * factor)
    return result, len(nodes)


def states_scaled(
    model: Model, weights: Weights, states: Collection[State], factor: float
) -> tuple[Weights, int]:
    """Host time in some states times a factor; waits for GPU work keep their length."""
    return time_scaled(model.host_time, weights, states, factor)


def time_scaled(
    time: HostTime, weights: Weights, causes: Collection[int], factor: float
) -> tuple[Weights, int]:
    """The parts of host time that belong to some causes times a factor."""
    left = np.array(weights.left)
    is_wanted = np.zeros(len(left), bool)
    is_wanted[[int(cause) for cause in causes]] = True
    result = weights.changed(before=True, duration=True)
    n = 0
    for spent, ns in ((time.before, result.before), (time.own, result.duration)):
        parts = np.flatnonzero(is_wanted[spent.state])
        is_concerned = np.zeros(len(ns), bool)
        is_concerned[spent.node[parts]] = True
        nodes = np.flatnonzero(is_concerned)
        saved = spent.ns[parts] * left[spent.state[parts]] * (1 - factor)
        np.subtract.at(ns, spent.node[parts], rounded(saved))
        ns[nodes] = np.maximum(ns[nodes], 0)
        n += len(nodes)
    left[is_wanted] *= factor
    return replace(result, left=tuple(left.tolist())), n


def without_loading(model: Model, weights: Weights) -> tuple[Weights, int]:
    """Batches that are ready when the host fetches them."""
    return states_scaled(model, weights, {State.DATA_LOADING}, 0.0)


def waiting(model: Model) -> Int64:
    """The nodes of returns from calls that synchronise, and from copies that block."""
    classes = model.profile.api.call_class
    waits = classes.fits(lambda each: each in (SYNC, COPY_CALL))
    nodes = np.flatnonzero(model.graph.kind == RETURN)
    return nodes[waits[model.graph.call[nodes]]]


def without_sync(model: Model, weights: Weights) -> tuple[Weights, int]:
    """Calls that synchronise, and copies that block, return at once."""
    nodes = waiting(model)
    result = weights.changed(before=True, lag=True)
    result.lag[1][nodes] = NO_EDGE
    result.before[nodes] = 0
    return result, len(nodes)


def removed(model: Model, weights: Weights, kernels: Bools) -> tuple[Weights, int]:
    """No such kernels, and no launches of them: nor the host's own time before these."""
    result = weights.changed(before=True, duration=True, lag=True)
    _remove(model, result, kernels)
    return result, int(np.count_nonzero(kernels))


def _remove(model: Model, weights: Weights, kernels: Bools) -> None:
    graph, of_kernel = model.graph, model.profile.api.of_kernel
    nodes = graph.node_of_kernel[np.flatnonzero(kernels)]
    weights.duration[nodes] = weights.before[nodes] = 0
    weights.lag[0][nodes] = weights.lag[2][nodes] = NO_EDGE
    weights.lag[1][nodes] = np.minimum(weights.lag[1][nodes], 0)
    gone = np.zeros(len(model.profile.api) + 1, bool)
    gone[of_kernel[kernels]] = True
    gone[of_kernel[~kernels]] = gone[-1] = False  # the call launches other work too
    host = np.flatnonzero((graph.call >= 0) & gone[graph.call])
    weights.duration[host] = 0
    weights.before[host] = np.minimum(weights.before[host], _loading(model, weights)[host])
    returns = host[graph.kind[host] == RETURN]
    weights.lag[1][returns] = NO_EDGE


def _loading(model: Model, weights: Weights) -> Int64:
    """[nodes] The data loading before each node, ns."""
    only = tuple(ns if i == State.DATA_LOADING else 0.0 for i, ns in enumerate(weights.left))
    return model.host_time.before.sums(len(model.graph), only)


def fused(model: Model, weights: Weights, kernels: Bools) -> tuple[Weights, int]:
    """Neighbours on a stream, in one layer and phase, as one kernel: it takes as long as the
    longest of them, which moves its bytes once."""
    order, run = _neighbours(model, kernels)
    result = weights.changed(before=True, duration=True, lag=True)
    if not len(order):
        return result, 0
    is_first = np.append(True, run[1:] != run[:-1])
    first = np.flatnonzero(is_first)
    nodes = model.graph.node_of_kernel[order]
    ns = weights.duration[nodes]
    # Each keeps a share of the time of the longest, so that none ends later than it did.
    sums, longest = np.add.reduceat(ns, first), np.maximum.reduceat(ns, first)
    share = rounded(ns * (longest / np.maximum(sums, 1))[np.cumsum(is_first) - 1])
    rest = longest - (np.add.reduceat(share, first) - share[first])
    share[first] = np.clip(rest, 0, ns[first])
    others = np.zeros(len(kernels), bool)
    others[order[~is_first]] = True
    _remove(model, result, others)
    result.duration[nodes] = share
    return result, int(np.count_nonzero(others))


def _neighbours(model: Model, kernels: Bools) -> tuple[Int64, Int64]:
    """Some kernels in order of their streams, and the number of the run of each."""
    profile, n = model.profile, len(kernels)
    keys = [numbers(profile, name) for name in ("pid", "device", "stream")]
    order = np.lexsort((np.arange(n), *keys))
    own = [texts(profile, name).ids for name in ("layer", "phase", "dir")]
    start = numbers(profile, "start")[order]
    same = start[1:] >= (start + numbers(profile, "sil")[order])[:-1] - _ROUNDING_NS
    for array in (*keys, *own, model.steps.of_kernel):
        same &= array[order[1:]] == array[order[:-1]]
    same &= kernels[order[1:]] & kernels[order[:-1]]
    run = np.cumsum(np.append(True, ~same))
    chosen = kernels[order]
    return order[chosen], run[chosen]


def as_graph(model: Model, weights: Weights, kernels: Bools | None = None) -> tuple[Weights, int]:
    """The launches of each thread between two waits, in one step, as one launch of a CUDA graph.

    The first keeps the typical length of a launch; the others, and the host's own time before
    them, are gone. Data loading remains.

    kernels : those of the graph, None for all
    """
    graph = model.graph
    result = weights.changed(before=True, duration=True)
    launches, is_first = _graph_launches(model)
    if kernels is not None:
        own = kernels[graph.kernel[launches]]
        launches, is_first = launches[own], is_first[own]
    length = result.duration[launches]
    typical = int(np.median(length[length > 0])) if (length > 0).any() else 0
    rest = launches[~is_first]
    result.before[rest] = np.minimum(result.before[rest], _loading(model, weights)[rest])
    result.duration[launches] = np.where(is_first, np.minimum(length, typical), 0)
    return result, len(rest)


def _graph_launches(model: Model) -> tuple[Int64, Bools]:
    """The nodes of launches in order of their thread, and whether each begins a graph."""
    graph, api = model.graph, model.profile.api
    thread = take(api.thread, graph.call)
    host = np.flatnonzero(graph.kind != 0)
    host = host[graph.call[host] >= 0]
    host = host[np.argsort(thread[host], kind="stable")]
    # Returns of calls that wait end a graph, as does a new step or thread.
    part = np.cumsum(graph.kind[host] == RETURN)
    launches = (graph.kind[host] == CALL) & (graph.kernel[host] >= 0)
    nodes, part = host[launches], part[launches]
    step: Int32 = take(model.steps.of_kernel, graph.kernel[nodes])
    new = (np.diff(part) > 0) | (np.diff(step) != 0) | (np.diff(thread[nodes]) != 0)
    return nodes, np.append(True, new)[: len(nodes)]


_LEAST: Final = 0.1  # of the host's own time: no recorder is known to slow a host down tenfold
_HALVINGS: Final = 10
_CLOSE: Final = 0.005  # of the length of a step


class Calibrated(NamedTuple):
    """The run without the recorder, from which changes start.

    Parameters
    ----------
    weights : those of `Model.base` where nothing is known
    wall : mean length of a step of its replay, ns
    factor : what remains of the host's own time, and of data loading in the process; None where
        nothing is known
    """

    weights: Weights
    wall: float
    factor: float | None


def calibrated(model: Model, steps: StepsOfKernels) -> Calibrated:
    """Scale the host's own time until the median replayed step is as long as the unrecorded one.

    Data loading is scaled too, unless worker processes load, which the recorder does not slow down.

    The run as recorded, if unrecorded steps were not measured or not shorter, or if no plausible
    factor explains them.

    steps : those of the whole run
    """
    recorded, typical = _replayed(model, model.base, None)
    measured = unrecorded_step(model.whole, steps)
    if measured is None or measured.median_ns >= typical:
        return recorded
    states = {State.DATA_LOADING} if stretches_loading(model.whole) else set()
    wanted, least, most = measured.median_ns, _LEAST, 1.0
    result, typical = _scaled(model, least, states)
    if typical > wanted * (1 + _CLOSE):
        return recorded
    for _ in range(_HALVINGS):
        if abs(typical - wanted) <= _CLOSE * wanted:
            break
        middle = (least + most) / 2
        result, typical = _scaled(model, middle, states)
        least, most = (middle, most) if typical < wanted else (least, middle)
    return result


def _scaled(model: Model, factor: float, states: Collection[State]) -> tuple[Calibrated, float]:
    """The host's own time, and that in some states, times a factor."""
    weights = host_scaled(model, model.base, factor)[0]
    return _replayed(model, states_scaled(model, weights, states, factor)[0], factor)


def _replayed(model: Model, weights: Weights, factor: float | None) -> tuple[Calibrated, float]:
    """The run with some weights, and the median length of its counted steps, ns."""
    wall = model.run(weights).wall
    typical = float(np.median(wall[model.is_counted])) if len(wall) else float("nan")
    return Calibrated(weights, model.mean(wall), factor), typical
