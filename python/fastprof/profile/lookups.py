"""What the columns of a trace share: frames, nodes, calls and costs of kernels.

What is distinct (a chain of layers, a list of operators, a kernel name) becomes a Python value
once; kernels refer to it by index.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core import _link, _path
from fastprof._core._take import distinct, take
from fastprof.model.arrays import Int32
from fastprof.model.columns import Ints, Lists, SeqMarkers, Values
from fastprof.model.markers import Kind, Meaning, SourceLines, dict_operators
from fastprof.model.trace import Trace
from fastprof.profile import gpu_work
from fastprof.profile.byte_limits import bandwidths, too_fast
from fastprof.profile.callpath.attribution import BACKWARD, NOWHERE, Attribution
from fastprof.profile.calls import CallsOfKernels, find_calls
from fastprof.profile.costs import Costs, cost


class Lookups:
    """Per-kernel arrays that columns share. Frames and nodes are those of Attribution."""

    def __init__(self, trace: Trace, attribution: Attribution, lines: SourceLines) -> None:
        self.trace, self.found, self.lines = trace, attribution, lines
        self.frame = attribution.frame_of_kernel

    @cached_property
    def meaning(self) -> Int32:
        """The frame that says what a kernel is for: its own, or its forward call's."""
        return take(self.found.meaning_of_frame, self.frame)

    @cached_property
    def node(self) -> Int32:
        return take(self.found.node_of_frame, self.frame)

    @cached_property
    def meaning_node(self) -> Int32:
        return take(self.found.node_of_frame, self.meaning)

    @cached_property
    def direction(self) -> Int32:
        """NOWHERE, FORWARD or BACKWARD."""
        direction = take(self.found.direction_of_node, self.node, NOWHERE)
        if self.found.in_engine is not None:
            direction[self.found.in_engine] = BACKWARD
        return direction

    def _in_backward(self) -> npt.NDArray[np.bool_]:
        """Whether each kernel is inside a backward range; the engine's other work is not."""
        says = [
            0 if m.backward or m.recompute else 1 if m.engine else -1 for m in self.found.meanings
        ]
        own = np.array([*says, -1], np.int32)[self.found.node_label]
        beside = _path.innermost(self.found.node_parent, own) == 1
        inside = (self.found.direction_of_node == BACKWARD) & ~beside
        return np.asarray(np.append(inside, False)[self.node])

    @property
    def thread(self) -> Int32:
        """Of the launch, index into Trace.threads."""
        return take(self.trace.launches.thread, self.trace.kernels.launch)

    @cached_property
    def names(self) -> tuple[Values, Values]:
        """Long and short name of every kernel."""
        return gpu_work.names(self.trace)

    @cached_property
    def calls(self) -> CallsOfKernels:
        return find_calls(self.trace, self.found, self.meaning)

    @cached_property
    def costs(self) -> Costs:
        long_names, _ = self.names
        duration, gpus = self.trace.kernels.duration, self.trace.about.gpus.values()
        return cost(self.calls, long_names.values, long_names.ids, duration, gpus)

    @cached_property
    def flops(self) -> Ints:
        """A copy outside of all calls whose cost is known computes nothing."""
        flops = self.costs.flops
        if self.trace.kernels.copied is None:
            return flops
        free = gpu_work.are_copies(self.trace) & (flops.values < 0)
        return Ints(np.where(free, np.int64(0), flops.values))

    @cached_property
    def bytes(self) -> Ints:
        """Of a copy or memset what the trace says, whatever call it is a part of."""
        moved = self.costs.bytes
        if self.trace.kernels.copied is None:
            return moved
        copied = gpu_work.copied(self.trace).values
        told = gpu_work.are_copies(self.trace) & (copied >= 0)
        return Ints(np.where(told, copied, moved.values))

    @property
    def exact(self) -> Ints:
        """Bytes that the memory cannot have moved in the call's time are estimates as well."""
        kernels, calls, exact = self.trace.kernels, self.calls, self.costs.exact.values
        bandwidth = bandwidths(self.trace.about, kernels.configs.device)[kernels.config]
        beyond = too_fast(
            self.bytes.values, kernels.duration, calls.group, calls.n_groups, bandwidth
        )
        return Ints(np.where(beyond & (exact > 0), np.int8(0), exact))

    def flags(self, wanted: Callable[[Meaning], bool]) -> Any:
        """uint8 [labels], 1 where wanted."""
        return np.array([wanted(meaning) for meaning in self.found.meanings], np.uint8)

    def chains(
        self, wanted: Callable[[Meaning], bool], node: Int32, value: Callable[[list[Meaning]], Any]
    ) -> Values:
        """For each kernel, what the chain of wanted labels down to its node comes to.

        Equal values get one id. `value` gets the chain outermost first.
        """
        found = self.found
        chain_of_node, parent, label = _path.nodes(
            found.node_parent, found.node_label, len(found.meanings), self.flags(wanted)
        )
        used, place = distinct(take(chain_of_node, node), len(parent))
        ids: dict[Any, int] = {}
        id_of_chain = []
        for chain in used:
            labels = []
            while chain >= 0:
                labels.append(found.meanings[label[chain]])
                chain = parent[chain]
            id_of_chain.append(ids.setdefault(value(labels[::-1]), len(ids)))
        return Values(np.array(id_of_chain, np.int32)[place], list(ids))

    def layer(self, node: Int32) -> Values:
        return self.chains(lambda m: m.kind == Kind.LAYER or bool(m.layers), node, _layers)

    def frames(self, node: Int32) -> Values:
        """The source lines of the innermost range that holds the whole stack, or line by line."""
        found = self.found
        if any(m.kind != Kind.TRACE and m.frames for m in found.meanings):
            return self.chains(lambda m: m.kind == Kind.TRACE or bool(m.frames), node, _frames)
        own = np.array(
            [i if m.kind == Kind.TRACE else -1 for i, m in enumerate(found.meanings)] or [-1],
            np.int32,
        )
        innermost = _path.innermost(found.node_parent, own[found.node_label])
        used, place = distinct(take(innermost, node), len(found.meanings))
        values = [found.meanings[label].frames if label >= 0 else () for label in used]
        return Values(place, values)

    @cached_property
    def source(self) -> Values:
        """The source lines of each kernel's call, outermost first."""
        return self.frames(self.meaning_node).mapped(self.lines.trace)

    def markers(self, kind: Kind) -> Values:
        """The texts of the markers of one kind around each kernel, outermost first."""
        return self.chains(
            lambda m: m.kind == kind, self.node, lambda chain: tuple(m.label for m in chain)
        )

    @cached_property
    def operators(self) -> Values:
        """(mods, ops) of the whole chain around each kernel, as PyProf wrote them."""
        return self.chains(
            lambda m: m.kind in (Kind.ARGUMENT, Kind.TORCH), self.node, dict_operators
        )

    @cached_property
    def numbers(self) -> tuple[Ints, Lists]:
        """seqId and altSeqId."""
        found, ranges = self.found, self.found.ranges
        linking, offsets, others = _link.numbers(
            found.frame_parent, found.frame_range, found.links_of_frame,
            ranges.seq, ranges.label, self.flags(_is_torch),
            self.frame, self._in_backward().view(np.uint8), _path.depth(found.node_parent),
        )  # fmt: skip
        return Ints(linking), Lists(offsets, others)

    def seq_markers(self) -> SeqMarkers:
        """torch's own ranges around each kernel, to be written as `seqMarker`."""
        found, ranges = self.found, self.found.ranges
        meanings = found.meanings
        return SeqMarkers(
            frame_of_row=self.frame,
            frame_parent=found.frame_parent,
            range_of_frame=found.frame_range,
            label_of_range=ranges.label,
            seq_of_range=ranges.seq,
            op_id_of_range=ranges.op_id,
            is_torch=self.flags(_is_torch),
            heads=[m.name for m in meanings],
            tails=[m.label[len(m.name) :] if m.kind == Kind.TORCH else "" for m in meanings],
        )


def _layers(chain: list[Meaning]) -> tuple[str, ...]:
    names: tuple[str, ...] = ()
    for meaning in chain:
        names = meaning.layers or (*names, meaning.name)
    return names


def _frames(chain: list[Meaning]) -> tuple[str, ...]:
    frames: tuple[str, ...] = ()
    for meaning in chain:
        frames = (*frames, *meaning.frames) if meaning.kind == Kind.FRAME else meaning.frames
    return frames


def _is_torch(meaning: Meaning) -> bool:
    return meaning.kind == Kind.TORCH
