"""Arrays that the columns of a trace share: frames, nodes, calls and costs of kernels.

Each distinct value (a chain of layers, a list of operators, a kernel name) is one Python object;
kernels refer to it by index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _link, _path, _share
from fastprof._core._take import distinct, take
from fastprof._system.classes import NamedTuple
from fastprof._system.threads import computed_once
from fastprof.model.arrays import Bools, Int32, Int64, UInt8
from fastprof.model.columns import Ints, Lists, SeqMarkers, SharedValues, Values
from fastprof.model.devices import resolve
from fastprof.model.markers import Kind, Meaning, SourceLines, dict_operators
from fastprof.model.metadata import About
from fastprof.model.trace import NEVER, Trace
from fastprof.profile import gpu_work
from fastprof.profile.callpath.attribution import BACKWARD, NOWHERE, Attribution
from fastprof.profile.calls import CallsOfKernels, find_calls
from fastprof.profile.costs import Costs, cost
from fastprof.profile.instances import RangeInstances
from fastprof.profile.phases import STEP
from fastprof.profile.steps import sources
from fastprof.profile.steps.kernel_steps import StepsOfKernels
from fastprof.profile.steps.window import Startup, Window, inside

DEEPEST: Final = 128  # work in layers or ranges that are nested deeper is that of their ancestor
MOST_FRAMES: Final = 256  # of a stack of Python, the innermost ones


class KernelPaths(NamedTuple):
    """The call paths of kernels: kernel i has the path `node[place[i]]` of a tree.

    Parameters
    ----------
    place : int32 [kernels]
    node : int32 [distinct paths], -1 for none
    parent, label : int32 [nodes] the tree, parents first; labels index Attribution.meanings
    """

    place: Int32
    node: Int32
    parent: Int32
    label: Int32


class Lookups:
    """Per-kernel arrays, computed on first use. Frames and nodes are those of Attribution."""

    def __init__(
        self,
        trace: Trace,
        attribution: Attribution,
        lines: SourceLines,
        window: Window | None = None,
        of_steps: str | None = None,
    ) -> None:
        """of_steps : the source of steps where none is asked for."""
        self.trace, self.attribution, self.lines = trace, attribution, lines
        self.window, self.of_steps = window, of_steps
        self.frame = attribution.frame_of_kernel
        self._steps: dict[str | None, StepsOfKernels] = {}

    @property
    def meaning(self) -> Int32:
        """The frame of the call that a kernel works for: its own, or its forward call's."""
        return take(self.attribution.meaning_of_frame, self.frame)

    @computed_once
    def node(self) -> Int32:
        return take(self.attribution.node_of_frame, self.frame)

    @computed_once
    def own_paths(self) -> KernelPaths:
        """The call paths without the user's own ranges, whose names may differ in each step."""
        return self._paths(self.tree_without_user_ranges, self.frame)

    @computed_once
    def meaning_paths(self) -> KernelPaths:
        """The same around the calls that kernels work for."""
        return self._paths(self.tree_without_user_ranges, self.meaning)

    @property
    def ranges(self) -> Values:
        """The user's own ranges around each kernel's call."""
        return self._user_chains(self.meaning)

    @property
    def launch_ranges(self) -> Values:
        """The user's own ranges around each kernel's launch, also those that a thread has open
        which waits for the launching one."""
        return self._user_chains(self.attribution.launch_frame_of_kernel)

    def _user_chains(self, frame: Int32) -> Values:
        attribution, is_own = self.attribution, self.flags(lambda m: m.kind == Kind.USER)
        path_of_frame, parent, label = self._tree_of_user_ranges
        used, place = distinct(frame, len(parent), path_of_frame)
        paths = KernelPaths(place, np.array(used, np.int32), parent, label)
        meanings = attribution.meanings
        return _chains(paths, meanings, is_own, _each(meanings, _labels), DEEPEST)

    @computed_once
    def _tree_of_user_ranges(self) -> tuple[Int32, Int32, Int32]:
        """The path of each frame in the tree of the user's ranges; its parents and labels."""
        attribution, is_own = self.attribution, self.flags(lambda m: m.kind == Kind.USER)
        if attribution.caller_of_frame is None:
            path_of_node, parent, label = self._tree(is_own)
            return take(path_of_node, attribution.node_of_frame), parent, label
        labels = take(attribution.node_label, attribution.node_of_frame)
        return _path.nodes(attribution.user_parent, labels, len(attribution.meanings), is_own)

    @computed_once
    def tree_without_user_ranges(self) -> tuple[Int32, Int32, Int32]:
        """The call-path tree without the user's own ranges, see `_tree`; the same for any kernels
        of a trace."""
        return self._tree(self.flags(lambda m: not _is_own_range(m)))

    def _tree(self, wanted: UInt8) -> tuple[Int32, Int32, Int32]:
        """The call-path tree of the wanted labels: the path of each node; parents and labels."""
        attribution = self.attribution
        return _path.nodes(
            attribution.node_parent, attribution.node_label, len(attribution.meanings), wanted
        )

    def _paths(self, tree: tuple[Int32, Int32, Int32], frame: Int32) -> KernelPaths:
        """The paths of the frames of kernels in a tree."""
        path_of_node, parent, label = tree
        used, place = distinct(frame, len(parent), self.attribution.node_of_frame, path_of_node)
        return KernelPaths(place, np.array(used, np.int32), parent, label)

    @computed_once
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
        own = take(np.array(kinds, np.int32), self.attribution.node_label)
        is_engine = _path.innermost(self.attribution.node_parent, own) == 1
        inside = (self.attribution.direction_of_node == BACKWARD) & ~is_engine
        return take(inside, self.node, False)

    @property
    def thread(self) -> Int32:
        """The launching thread: index into Trace.threads."""
        return take(self.trace.launches.thread, self.trace.kernels.launch)

    @computed_once
    def names(self) -> tuple[SharedValues, SharedValues]:
        """Long and short name of every kernel."""
        return gpu_work.names(self.trace)

    @computed_once
    def calls(self) -> CallsOfKernels:
        return find_calls(self.trace, self.attribution, self.meaning)

    @computed_once
    def costs(self) -> Costs:
        long_names, _ = self.names
        duration, gpus = self.trace.kernels.duration, self.trace.about.gpus.values()
        return cost(self.calls, long_names, duration, gpus)

    @computed_once
    def flops(self) -> Ints:
        """The FLOPs; 0 for copies and memsets of unknown cost."""
        flops = self.costs.flops
        if self.trace.kernels.copied is None:
            return flops
        free = gpu_work.are_copies(self.trace) & (flops.values < 0)
        np.copyto(flops.values, 0, where=free)
        return flops

    @computed_once
    def bytes(self) -> Ints:
        """The bytes; for copies and memsets, the recorded ones, whatever the call."""
        moved = self.costs.bytes
        if self.trace.kernels.copied is None:
            return moved
        copied = gpu_work.copied(self.trace).values
        recorded = gpu_work.are_copies(self.trace) & (copied >= 0)
        np.copyto(moved.values, copied, where=recorded)
        return moved

    @property
    def known(self) -> tuple[Bools, Bools]:
        """[kernels] Whether `flops` and `bytes` are known, which takes less time than these."""
        flops, moved = self.costs.known
        if self.trace.kernels.copied is not None:
            are_copies = gpu_work.are_copies(self.trace)
            flops |= are_copies
            moved |= are_copies & (gpu_work.copied(self.trace).values >= 0)
        return flops, moved

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
        beyond &= exact > 0
        np.copyto(exact, 0, where=beyond)
        return Ints(exact)

    def steps(
        self, source: str | None = None, read: Callable[[], RangeInstances] | None = None
    ) -> StepsOfKernels:
        """The steps by a source, kept. `read` reads all ranges; needed for some `range:REGEX`."""
        source = source or self.of_steps
        if source not in self._steps:
            self._steps[source] = sources.find(self, source, read)
        return self._steps[source]

    @computed_once
    def startup(self) -> Startup | None:
        return sources.startup_of(self)

    @computed_once
    def answered(self) -> Bools | None:
        """[kernels] Whether each is in the window, or after the start-up; None: all are."""
        window, startup = self.window, self.startup
        if startup is not None:
            return inside(self.trace, Window(startup.until, NEVER))
        return inside(self.trace, window) if window is not None and window.text else None

    def flags(self, wanted: Callable[[Meaning], bool]) -> UInt8:
        """uint8 [labels], 1 where wanted."""
        return np.array([wanted(meaning) for meaning in self.attribution.meanings], np.uint8)

    def chains(
        self,
        wanted: Callable[[Meaning], bool],
        paths: KernelPaths,
        value: Callable[[Sequence[Meaning]], Any],
        deepest: int | None = None,
    ) -> SharedValues:
        """For each kernel, the value of the chain of wanted labels from the root of its path.

        `value` is called with each distinct chain, outermost first. Equal values get one id.
        Chains end after the `deepest` first labels.
        """
        meanings = self.attribution.meanings
        return _chains(paths, meanings, self.flags(wanted), _each(meanings, value), deepest)

    def folds(
        self,
        wanted: Callable[[Meaning], bool],
        paths: KernelPaths,
        start: Any,
        fold: Callable[[Any, Meaning], Any],
        deepest: int | None = None,
    ) -> SharedValues:
        """As `chains`, with values that follow from that of the chain without its last label.

        fold : the value of a chain, from that without its last label, and the label; `start` is
            that of the empty chain
        """

        def values(used: list[int], parent: Sequence[int], label: Sequence[int]) -> list[Any]:
            meanings, value_of = self.attribution.meanings, {-1: start}
            for node in used:
                ends = []
                while node not in value_of:
                    ends.append(node)
                    node = parent[node]
                value = value_of[node]
                for end in reversed(ends):
                    value = value_of[end] = fold(value, meanings[label[end]])
            return [value_of[node] for node in used]

        return _chains(paths, self.attribution.meanings, self.flags(wanted), values, deepest)

    def layer(self, paths: KernelPaths) -> Values:
        return self.folds(
            lambda m: m.kind == Kind.LAYER or bool(m.layers), paths, (), _layers, DEEPEST
        )

    def frames(self, paths: KernelPaths) -> Values:
        """The source lines: of the innermost range with a complete stack, or of Python frames."""
        meanings = self.attribution.meanings
        if any(m.kind != Kind.TRACE and m.frames for m in meanings):
            wanted = self.flags(lambda m: m.kind == Kind.TRACE or bool(m.frames))
            return _chains(paths, meanings, wanted, _each(meanings, _frames, MOST_FRAMES))
        own = np.array(
            [i if m.kind == Kind.TRACE else -1 for i, m in enumerate(meanings)], np.int32
        )
        innermost = _path.innermost(paths.parent, take(own, paths.label))
        used, place = distinct(take(innermost, paths.node), len(meanings))
        values = [meanings[label].frames if label >= 0 else () for label in used]
        return SharedValues(paths.place, place, values)

    @computed_once
    def source(self) -> Values:
        """The source lines of each kernel's call, outermost first."""
        return self.frames(self.meaning_paths).mapped(self.lines.trace)

    def user_range(self, frame: Int32) -> Ints:
        """The innermost of the user's own ranges around each frame, also of those of a waiting
        thread: its row in `Attribution.ranges`."""
        attribution = self.attribution
        in_user = take(self.flags(lambda m: m.kind == Kind.USER), attribution.node_label, 0)
        innermost = _path.nearest(attribution.user_parent, attribution.node_of_frame, in_user)
        return Ints(take(attribution.frame_range, take(innermost, frame)))

    def markers(self, kind: Kind) -> Values:
        """The texts of the markers of one kind around each kernel, outermost first."""
        return self.chains(lambda m: m.kind == kind, self.own_paths, _labels)

    @computed_once
    def operators(self) -> SharedValues:
        """(mods, ops) of the complete chain around each kernel, as PyProf writes them."""
        return self.chains(
            lambda m: m.kind in (Kind.ARGUMENT, Kind.TORCH), self.own_paths, dict_operators
        )

    @computed_once
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


def _chains(
    paths: KernelPaths,
    meanings: list[Meaning],
    wanted: UInt8,
    values: Callable[[list[int], Sequence[int], Sequence[int]], Iterable[Any]],
    deepest: int | None = None,
) -> SharedValues:
    """See `Lookups.chains`.

    values : from the last nodes of chains, and the parents and labels of all nodes
    """
    chain_of_node, parent, label = _path.nodes(paths.parent, paths.label, len(meanings), wanted)
    chain = take(chain_of_node, paths.node)
    levels = _path.levels(parent)
    if deepest is not None and levels.max(initial=0) >= deepest:
        numbers = np.arange(len(parent), dtype=np.int32)
        kept = _path.innermost(parent, np.where(levels < deepest, numbers, np.int32(-1)))
        chain = take(kept, chain)
    used, place = distinct(chain, len(parent))
    ids: dict[Any, int] = {}
    iterable = values(used, parent.data, label.data)
    id_of_chain = [ids.setdefault(value, len(ids)) for value in iterable]
    return SharedValues(paths.place, take(np.array(id_of_chain, np.int32), place), list(ids))


def _each(
    meanings: list[Meaning], value: Callable[[Sequence[Meaning]], Any], innermost: int = NEVER
) -> Callable[[list[int], Sequence[int], Sequence[int]], Iterator[Any]]:
    """`values` of `_chains`: of each chain by itself.

    innermost : the most labels of a chain, from its end
    """

    def values(used: list[int], parent: Sequence[int], label: Sequence[int]) -> Iterator[Any]:
        return (value(_chain(node, parent, label, meanings, innermost)) for node in used)

    return values


def _chain(
    node: int, parent: Sequence[int], label: Sequence[int], meanings: list[Meaning], most: int
) -> list[Meaning]:
    """The meanings of a node and of those around it, outermost first; none for -1."""
    chain: list[Meaning] = []
    while node >= 0 and len(chain) < most:
        chain.append(meanings[label[node]])
        node = parent[node]
    chain.reverse()
    return chain


def _is_own_range(meaning: Meaning) -> bool:
    """Whether a range is the user's own and affects no column but `ranges`."""
    affects_others = (
        meaning.backward or meaning.recompute or meaning.engine or meaning.layers or meaning.frames
    )
    return meaning.kind == Kind.USER and not affects_others and not STEP.match(meaning.name)


def _labels(chain: Sequence[Meaning]) -> tuple[str, ...]:
    return tuple([meaning.label for meaning in chain])


def _layers(around: tuple[str, ...], meaning: Meaning) -> tuple[str, ...]:
    return meaning.layers or (*around, meaning.name)


def _frames(chain: Sequence[Meaning]) -> tuple[str, ...]:
    frames: list[str] = []
    for meaning in chain:
        if meaning.kind == Kind.FRAME:
            frames.extend(meaning.frames)
        else:
            frames = list(meaning.frames)
    return tuple(frames)


def _is_torch(meaning: Meaning) -> bool:
    return meaning.kind == Kind.TORCH


# Limit, as a multiple of the memory's bandwidth. Caches are faster than the memory: measured,
# adds of cached tensors reach 1.04.
MOST = 1.5


def bandwidths(about: About, device: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Memory bandwidth of each device, bytes per second; NaN: unknown. device : [n] numbers"""
    devices, place = np.unique(device, return_inverse=True)
    results = [
        resolve(about.gpus.get(number), about.gpu_figures.get(number)).bandwidth or np.nan
        for number in devices.tolist()
    ]
    return np.array(results, np.float64)[place]


def too_fast(
    bytes_: Int64,
    duration: Int64,
    group: Int32,
    n_groups: int,
    memory: Int32,
    bandwidth: npt.NDArray[np.float64],
) -> Bools:
    """bool [kernels]: whether a kernel's call exceeds `MOST` times the memory's bandwidth.

    Calls whose kernels took no measurable time have no rate.

    Parameters
    ----------
    bytes_ : [kernels] its share of the call's bytes; -1: unknown
    duration : ns [kernels]; -1: unknown
    group : [kernels] the call instance, 0 .. n_groups - 1; -1: a call of one kernel
    memory : [kernels] index into `bandwidth`
    bandwidth : bytes per second [memories]; NaN: unknown
    """
    if np.isnan(bandwidth).all():
        return np.zeros(len(bytes_), bool)
    return _share.too_fast(bytes_, duration, group, n_groups, memory, bandwidth, MOST)
