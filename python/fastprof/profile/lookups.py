"""Arrays that the columns of a trace share: frames, nodes, calls and costs of kernels.

Each distinct value (a chain of layers, a list of operators, a kernel name) is one Python object;
kernels refer to it by index.
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
    """Per-kernel arrays, computed on first use. Frames and nodes are those of Attribution."""

    def __init__(self, trace: Trace, attribution: Attribution, lines: SourceLines) -> None:
        self.trace, self.attribution, self.lines = trace, attribution, lines
        self.frame = attribution.frame_of_kernel

    @cached_property
    def meaning(self) -> Int32:
        """The frame of the call that a kernel works for: its own, or its forward call's."""
        return take(self.attribution.meaning_of_frame, self.frame)

    @cached_property
    def node(self) -> Int32:
        return take(self.attribution.node_of_frame, self.frame)

    @cached_property
    def meaning_node(self) -> Int32:
        return take(self.attribution.node_of_frame, self.meaning)

    @cached_property
    def direction(self) -> Int32:
        """NOWHERE, FORWARD or BACKWARD."""
        direction = take(self.attribution.direction_of_node, self.node, NOWHERE)
        if self.attribution.in_engine is not None:
            direction[self.attribution.in_engine] = BACKWARD
        return direction

    def _in_backward(self) -> npt.NDArray[np.bool_]:
        """Whether each kernel is inside a backward range; other work of the engine is not."""
        kinds = [
            0 if m.backward or m.recompute else 1 if m.engine else -1
            for m in self.attribution.meanings
        ]
        own = np.array([*kinds, -1], np.int32)[self.attribution.node_label]
        is_engine = _path.innermost(self.attribution.node_parent, own) == 1
        inside = (self.attribution.direction_of_node == BACKWARD) & ~is_engine
        return np.asarray(np.append(inside, False)[self.node])

    @property
    def thread(self) -> Int32:
        """The launching thread: index into Trace.threads."""
        return take(self.trace.launches.thread, self.trace.kernels.launch)

    @cached_property
    def names(self) -> tuple[Values, Values]:
        """Long and short name of every kernel."""
        return gpu_work.names(self.trace)

    @cached_property
    def calls(self) -> CallsOfKernels:
        return find_calls(self.trace, self.attribution, self.meaning)

    @cached_property
    def costs(self) -> Costs:
        long_names, _ = self.names
        duration, gpus = self.trace.kernels.duration, self.trace.about.gpus.values()
        return cost(self.calls, long_names.values, long_names.ids, duration, gpus)

    @cached_property
    def flops(self) -> Ints:
        """The FLOPs; 0 for copies and memsets of unknown cost."""
        flops = self.costs.flops
        if self.trace.kernels.copied is None:
            return flops
        free = gpu_work.are_copies(self.trace) & (flops.values < 0)
        return Ints(np.where(free, np.int64(0), flops.values))

    @cached_property
    def bytes(self) -> Ints:
        """The bytes; for copies and memsets, the recorded ones, whatever the call."""
        moved = self.costs.bytes
        if self.trace.kernels.copied is None:
            return moved
        copied = gpu_work.copied(self.trace).values
        recorded = gpu_work.are_copies(self.trace) & (copied >= 0)
        return Ints(np.where(recorded, copied, moved.values))

    @property
    def exact(self) -> Ints:
        """Whether the costs are exact; bytes beyond the memory's bandwidth are estimates."""
        kernels, calls, exact = self.trace.kernels, self.calls, self.costs.exact.values
        beyond = too_fast(
            self.bytes.values,
            kernels.duration,
            calls.group,
            calls.n_groups,
            kernels.config,
            bandwidths(self.trace.about, kernels.configs.device),
        )
        return Ints(np.where(beyond & (exact > 0), np.int8(0), exact))

    def flags(self, wanted: Callable[[Meaning], bool]) -> Any:
        """uint8 [labels], 1 where wanted."""
        return np.array([wanted(meaning) for meaning in self.attribution.meanings], np.uint8)

    def chains(
        self, wanted: Callable[[Meaning], bool], node: Int32, value: Callable[[list[Meaning]], Any]
    ) -> Values:
        """For each kernel, the value of the chain of wanted labels from the root to its node.

        `value` is called with each distinct chain, outermost first. Equal values get one id.
        """
        attribution = self.attribution
        chain_of_node, parent, label = _path.nodes(
            attribution.node_parent,
            attribution.node_label,
            len(attribution.meanings),
            self.flags(wanted),
        )
        used, place = distinct(take(chain_of_node, node), len(parent))
        ids: dict[Any, int] = {}
        id_of_chain = []
        for chain in used:
            labels = []
            while chain >= 0:
                labels.append(attribution.meanings[label[chain]])
                chain = parent[chain]
            id_of_chain.append(ids.setdefault(value(labels[::-1]), len(ids)))
        return Values(np.array(id_of_chain, np.int32)[place], list(ids))

    def layer(self, node: Int32) -> Values:
        return self.chains(lambda m: m.kind == Kind.LAYER or bool(m.layers), node, _layers)

    def frames(self, node: Int32) -> Values:
        """The source lines: of the innermost range with a complete stack, or of Python frames."""
        attribution = self.attribution
        if any(m.kind != Kind.TRACE and m.frames for m in attribution.meanings):
            return self.chains(lambda m: m.kind == Kind.TRACE or bool(m.frames), node, _frames)
        own = np.array(
            [i if m.kind == Kind.TRACE else -1 for i, m in enumerate(attribution.meanings)] or [-1],
            np.int32,
        )
        innermost = _path.innermost(attribution.node_parent, own[attribution.node_label])
        used, place = distinct(take(innermost, node), len(attribution.meanings))
        values = [attribution.meanings[label].frames if label >= 0 else () for label in used]
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
        """(mods, ops) of the complete chain around each kernel, as PyProf writes them."""
        return self.chains(
            lambda m: m.kind in (Kind.ARGUMENT, Kind.TORCH), self.node, dict_operators
        )

    @cached_property
    def numbers(self) -> tuple[Ints, Lists]:
        """seqId and altSeqId."""
        attribution, ranges = self.attribution, self.attribution.ranges
        linking, offsets, others = _link.numbers(
            attribution.frame_parent, attribution.frame_range, attribution.links_of_frame,
            ranges.seq, ranges.label, self.flags(_is_torch),
            self.frame, self._in_backward().view(np.uint8), _path.depth(attribution.node_parent),
        )  # fmt: skip
        return Ints(linking), Lists(offsets, others)

    def seq_markers(self) -> SeqMarkers:
        """torch's own ranges around each kernel, for `seqMarker`."""
        attribution, ranges = self.attribution, self.attribution.ranges
        meanings = attribution.meanings
        return SeqMarkers(
            frame_of_row=self.frame,
            frame_parent=attribution.frame_parent,
            range_of_frame=attribution.frame_range,
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
