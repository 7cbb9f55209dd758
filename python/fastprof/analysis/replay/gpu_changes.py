"""Changes of the durations of kernels.

Copies or communication behind other work: on a stream of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.advice.calls import sizes
from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.replay.graph import RETURN, WORK, pids_of
from fastprof.analysis.replay.model import Model, rounded
from fastprof.analysis.replay.runs import NO_EDGE, Weights
from fastprof.analysis.roofline.ideal import PRODUCTS, Ideals, ideals_of
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools, Int32, Int64, unique
from fastprof.model.columns import Values
from fastprof.model.devices import Device

_BYTES: Final = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1}
_WIDE: Final = frozenset({"fp32", "tf32"})
_NARROW: Final = frozenset({"fp16", "bf16"})


def scaled(model: Model, weights: Weights, kernels: Bools, factor: float) -> tuple[Weights, int]:
    """Durations times a factor; of collectives, the transfer only."""
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
    types, cores = (texts(model.profile, each) for each in ("compute_type", "tc"))
    moved = np.maximum(numbers(model.profile, "bytes")[rows], 0)
    factor, floor = np.ones(len(rows)), np.zeros(len(rows))
    for number, gpu in devices.items():
        own = device == number
        new = gpu.peak(name, True)
        if new is None:
            raise ReportError(f"dtype: no peak of {name} known for GPU {number}: --peak {name}=N")
        for each in _WIDE - {name}:
            old = gpu.peak(each, each == "tf32")
            some = own & _is_one_of(types, {each})[rows]
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
    growth = np.array([*(_growth(str(each), multiple) for each in more.values), 1.0])[more.ids]
    rows = rows[growth[rows] > 1.0]
    factor = growth[rows]
    device = numbers(model.profile, "device")[rows]
    types = texts(model.profile, "compute_type")
    for number in unique(device).tolist():
        gpu = devices.get(number, Device(None))
        for each in _NARROW:
            old, new = gpu.peak(each, False), gpu.peak(each, True)
            some = _is_one_of(types, {each})[rows] & (device == number)
            factor[some] *= min(old / new, 1.0) if old and new else 1.0
    nodes = model.graph.node_of_kernel[rows]
    return _with_durations(weights, nodes, weights.duration[nodes] * np.minimum(factor, 1.0))


def _growth(params: str, multiple: int) -> float:
    """How many times the FLOPs of a product grow if its sizes are padded."""
    found = 1.0
    given = sizes(params)
    for name in "MNK":
        if given.get(name):
            found *= -(-given[name] // multiple) * multiple / given[name]
    return found


def _products(model: Model, types: frozenset[str]) -> Int64:
    """Kernels of products with one of these compute types."""
    kinds, of_type = (texts(model.profile, each) for each in ("class", "compute_type"))
    fits = _is_one_of(kinds, PRODUCTS) & _is_one_of(of_type, types)
    return np.flatnonzero(fits & (numbers(model.profile, "helper") != 1))


def _is_one_of(column: Values, wanted: Collection[str]) -> Bools:
    """[rows] Whether a column has one of these values."""
    return column.fits(lambda value: value in wanted)


def _ideal_ns(model: Model, ideals: Ideals) -> Floats64:
    """[kernels] The ideal time; 0 for helpers."""
    flops, moved = (np.maximum(numbers(model.profile, each), 0) for each in ("flops", "bytes"))
    of_kernel = model.cells.of_kernel
    found: Floats64 = flops * ideals.per_flop[of_kernel] + moved * ideals.per_byte[of_kernel]
    found[numbers(model.profile, "helper") == 1] = 0.0
    return found


def _with_durations(
    weights: Weights, nodes: Int32, ns: npt.NDArray[np.floating[Any]]
) -> tuple[Weights, int]:
    """The same with other durations, and how many nodes differ."""
    found = weights.changed(duration=True)
    found.duration[nodes] = rounded(ns)
    return found, len(nodes)


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
    _detach_others(model, chosen, before, edges)
    _chain(model, rows, before, edges)
    return replace(weights, source=edges.source, lag=edges.lag), len(rows)


class _Edges(NamedTuple):
    """The edges that change, as in Weights."""

    source: tuple[Int32, Int32, Int32]
    lag: tuple[Int32, Int32, Int32]


def _not_chosen_before(model: Model, weights: Weights, chosen: Bools) -> Int32:
    """[nodes] Itself; of chosen work, the last other work before it on its stream; 0: none."""
    found = np.arange(len(chosen), dtype=np.int32)
    nodes = np.flatnonzero(chosen)
    known = weights.lag[1][nodes] != NO_EDGE
    found[nodes] = np.where(known, weights.source[1][nodes] // 2, 0)
    while chosen[found].any():
        found = found[found]
    return found


def _detach_others(model: Model, chosen: Bools, before: Int32, edges: _Edges) -> None:
    """What waits for chosen work waits for the work before it."""
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
        source[slot][nodes] = np.where(instead > 0, 2 * instead + 1, 0)
        lag[slot][nodes] = np.where(instead > 0, np.minimum(lag[slot][nodes], 0), NO_EDGE)


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
