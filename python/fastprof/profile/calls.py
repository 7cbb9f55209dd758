"""Which call each kernel works for, and what tells its cost.

A kernel's call is the outermost range around it whose operator has a model; with no model anywhere,
the outermost. A backward kernel works for the forward call that its autograd node came from.

The report names the call. Its cost is that of the products inside of it where their own sizes and
types are known: what backward passes do differs from node to node, and autocast calls an operator
again within itself, in another type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _calls, _path, _pools, _share
from fastprof._core._take import distinct, take
from fastprof.model.call import Call, Tensor
from fastprof.model.markers import Kind, Meaning, op_name
from fastprof.model.trace import Int32, Trace
from fastprof.ops.registry import Formula
from fastprof.ops.tensor import canonical_type
from fastprof.profile.batch_lengths import with_batches
from fastprof.profile.call_results import told_results
from fastprof.profile.callpath.attribution import Attribution

Bools = npt.NDArray[np.bool_]
Flags = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Named:
    """A distinct call as the report names it; `call` is None when its arguments are not known.

    `exact` is False where its result is an estimate, and so what its cost follows from.
    """

    mod: str | None
    op: str | None
    call: Call | None
    exact: bool = True


def named(meaning: Meaning) -> Named:
    """How the report names the call of a marker or of a torch range."""
    call = meaning.call
    if meaning.kind == Kind.ARGUMENT and call is not None:
        return Named(call.mod, call.op, call)
    known = call if meaning.has_arguments else None
    # A name without a namespace is one of ATen's in old releases, or nobody knows whose.
    spaced = call is not None and ("::" in meaning.name or call.mod != "aten")
    qualified = spaced and not meaning.backward
    return Named(call.mod if qualified and call else None, op_name(meaning), known)


@dataclass(frozen=True)
class CallsOfKernels:
    """The call of every kernel.

    Parameters
    ----------
    named : the distinct calls
    call : int32 [kernels], index into `named`, -1 for none
    backward : bool [kernels], whether the kernel does the backward work of the call
    work : int32 [kernels], index into `named`: the call whose cost tells, that call or one inside
        of it; -1 for none
    gradient : bool [kernels], whether the kernel does the backward pass of `work`
    helper : int32 [kernels], index into `named`: the operator that the kernel does beside the
        products of `work`, a cast for example; -1 for none
    group : int32 [kernels], which instance of what tells its cost, -1 for none
    taken : uint8 [groups], how many of the main parts are those of operators inside of it
    """

    named: list[Named]
    call: Int32
    backward: Bools
    work: Int32
    gradient: Bools
    helper: Int32
    group: Int32
    taken: Flags

    @property
    def n_groups(self) -> int:
        return len(self.taken)


def find_calls(trace: Trace, found: Attribution, meaning: Int32) -> CallsOfKernels:
    """Find the call of every kernel.

    meaning : [kernels] the frame that says what a kernel is for: its own, or its forward call's
    """
    told = told_results(trace, found)
    meanings, label_of_frame = told.meanings, told.label_of_frame
    calls = [m.call if m.has_arguments else None for m in meanings]
    says = _says(meanings)
    tells = np.array([tells_all(call) for call in calls], bool) & (says & _calls.KNOWN != 0)
    frames = np.arange(len(label_of_frame), dtype=np.int32)
    own = np.where(tells[label_of_frame], frames, np.int32(-1))
    picked = _picked(meanings, found.frame_parent, label_of_frame)
    beside = (
        take(_beside_nodes(meanings, found.frame_parent, label_of_frame), found.frame_of_kernel, 0)
        != 0
    )
    label, backward, work, gradient, helper, group, taken = _calls.find(
        found.frame_of_kernel,
        np.where(beside, found.frame_of_kernel, meaning),
        (
            found.frame_parent,
            label_of_frame,
            _first_frames(found.frame_range, len(trace.ranges)),
            picked,
            _path.innermost(found.frame_parent, own),
            found.backward_of_frame,
            _instances(found, picked),
        ),
        says,
        _numbers([None if call is None else (call.mod, call.op) for call in calls]),
        _numbers([_types(call) for call in calls]),
    )
    meanings, (label, work, helper), batch = with_batches(
        found, meanings, label_of_frame, [label, work, helper]
    )
    (label, work, helper), used = _numbered([label, work, helper], len(meanings))
    for launch in (found.replay_of_kernel, batch):
        if launch is not None:
            group, taken = _apart(group, launch, taken)
    return CallsOfKernels(
        named=[
            replace(named(meanings[number]), exact=number not in told.estimated) for number in used
        ],
        call=label,
        backward=backward,
        work=work,
        gradient=gradient,
        helper=helper,
        group=group,
        taken=taken,
    )


def _first_frames(range_of_frame: Int32, n_ranges: int) -> Int32:
    """The frame that stands for each: the first of its range. Ranges that cross have several."""
    frames = np.arange(len(range_of_frame), dtype=np.int32)
    if len(frames) == n_ranges:
        return frames
    first = np.empty(n_ranges, np.int32)
    first[range_of_frame[::-1]] = frames[::-1]
    return take(first, range_of_frame)


def _numbered(columns: list[Int32], n_labels: int) -> tuple[list[Int32], list[int]]:
    """Labels as numbers from 0 up, -1 as it is, and which label each number means."""
    found = [distinct(column, n_labels) for column in columns]
    used = sorted({label for labels, _ in found for label in labels if label >= 0})
    number = {label: i for i, label in enumerate(used)} | {-1: -1}
    return [
        take(np.array([number[label] for label in labels], np.int32), place)
        for labels, place in found
    ], used


def _apart(group: Int32, launch: Int32, taken: Flags) -> tuple[Int32, Flags]:
    """Each launch of a graph makes the calls of its capture once more, for its own batch."""
    apart = np.where(group >= 0, _pools.pairs(group, launch), np.int32(-1))
    taken_apart = np.zeros(int(apart.max(initial=-1)) + 1, np.uint8)
    known = group >= 0
    taken_apart[apart[known]] = taken[group[known]]
    return apart, taken_apart


# What torch announces of itself around work that is no operator of its own: a fused optimizer.
ANNOUNCED: Final = re.compile(
    r"Optimizer\.\w+#|DistributedDataParallel\.forward\Z|DataParallel\.forward\Z"
)

# Which ranges may be a kernel's call, the best first.
_RANKS: list[Callable[[Meaning], bool]] = [
    lambda m: m.call is not None and m.has_arguments and ops.has_model(m.call),
    lambda m: m.kind == Kind.ARGUMENT,
    lambda m: m.call is not None and ops.find(m.call) is not None,  # of unknown shapes
    lambda m: m.kind == Kind.TORCH and "::" in m.name and not m.autograd_node,
    # A TorchScript function, a custom function of autograd, a node: an operator inside tells more.
    lambda m: m.kind == Kind.TORCH,
    lambda m: m.kind == Kind.USER and ANNOUNCED.match(m.name) is not None,
]


# Products of matrices, convolutions and attention: calls whose work these kinds of kernels do.
FAMILY_KERNELS: Final = frozenset({"gemm", "convolution", "attention"})
_FAMILY_ROOMS: Final = tuple(
    f"{ops.__name__}.{room}." for room in ("matrix", "convolution", "attention")
)
_ONE_GRADIENT: Final = re.compile(r"_backward_(?:input|weights?|bias)\Z")


def _says(meanings: list[Meaning]) -> npt.NDArray[np.uint16]:
    """What each label says of its call, for `_calls.find`."""
    return np.array(
        [what_says(m.call, m.has_arguments, m.backward and not m.autograd_node) for m in meanings],
        np.uint16,
    )


def what_says(call: Call | None, has_arguments: bool, gradient: bool = False) -> int:
    """What a call says of its cost, as bits of `_calls`; gradient: of an operator of a backward
    pass."""
    if call is None:
        return _calls.UNKNOWN_BACKWARD
    work = ops.work(call, "fprop") if has_arguments else None
    backward = ops.work(call, "bprop") if has_arguments else None
    formula = ops.find(call)
    says = (
        _calls.GRADIENT * gradient
        | _calls.UNKNOWN_BACKWARD * (backward is None)
        | _calls.FORMULA * (formula is not None)
    )
    if work is None:
        return says | _calls.FAMILY * _is_of_family(formula)
    mains = [part.kernels for part in work.parts if part.role != "bias"]
    family = bool(mains) and all(kernels and kernels <= FAMILY_KERNELS for kernels in mains)
    return (
        says
        | _calls.KNOWN
        | _calls.FAMILY * family
        | _calls.MATRICES * (family and all(kernels == {"gemm"} for kernels in mains))
        | _calls.MOVES * (work.cost.flops == 0)
        | _calls.BIAS * _has_others(work)
        | _calls.BIAS_BACKWARD * _has_others(backward)
    )


def tells_all(call: Call | None) -> bool:
    """Not one gradient of a convolution: the operator around both tells more sizes."""
    return call is not None and _ONE_GRADIENT.search(call.op) is None


def _is_of_family(formula: Formula | None) -> bool:
    return formula is not None and formula.function.__module__.startswith(_FAMILY_ROOMS)


def _has_others(work: ops.Work | None) -> bool:
    return work is not None and any(not part.kernels <= FAMILY_KERNELS for part in work.parts)


def _types(call: Call | None) -> frozenset[str] | None:
    """The floating types of a call's tensors; None where it has none."""
    tensors = [arg.value for arg in call.args if isinstance(arg.value, Tensor)] if call else []
    # A number that was made a tensor has a type of its own.
    names = {canonical_type(tensor.dtype) or "" for tensor in tensors if tensor.shape}
    return frozenset(name for name in names if "float" in name) or None


def typed_like(call: Call, other: Call) -> Call:
    """A call that tells no types with the type of another, where that has a single one.

    Ranges of emit_nvtx hold sizes only; the marker of the forward call around them holds types.
    """
    types = _types(other)
    tensors = [arg.value for arg in call.args if isinstance(arg.value, Tensor)]
    if types is None or len(types) > 1 or any(tensor.dtype for tensor in tensors):
        return call
    (dtype,) = types
    return replace(
        call,
        args=tuple(
            replace(arg, value=replace(arg.value, dtype=dtype))
            if isinstance(arg.value, Tensor)
            else arg
            for arg in call.args
        ),
    )


def _numbers(values: Sequence[Hashable | None]) -> Int32:
    """A number for each distinct value, -1 for None."""
    numbers: dict[Hashable, int] = {}
    return np.array(
        [-1 if each is None else numbers.setdefault(each, len(numbers)) for each in values],
        np.int32,
    )


# What the engine does to a gradient so that it fits its input (validate_outputs of engine.cpp).
FITS_GRADIENT: Final = frozenset({"sum", "sum_to_size", "to", "_to_copy", "view", "reshape"})


def _beside_nodes(meanings: list[Meaning], parent: Int32, label_of_frame: Int32) -> Int32:
    """[frames] 1 for what the engine runs for a node but not within it: sums of gradients, hooks.

    It is no part of the backward pass of the node's forward call, unless it brings a gradient into
    the shape and type of the input: that is how the gradient of what was broadcast, a bias, is
    summed. A node that is not there itself is taken to be all that the engine ran for it.
    """
    engine = np.array([m.evaluates for m in meanings], bool)
    node = np.array([m.autograd_node for m in meanings], bool) & ~engine
    if not engine.any():
        return np.zeros(len(label_of_frame), np.int32)
    is_engine, is_node = engine[label_of_frame], node[label_of_frame]
    has_node = np.zeros(len(parent) + 1, bool)  # the last for parent -1
    has_node[parent[is_node]] = True
    own = np.full(len(parent), -1, np.int32)
    own[is_engine] = has_node[:-1][is_engine]
    own[is_node] = 0
    fits = np.array([m.call is not None and m.call.op in FITS_GRADIENT for m in meanings], bool)
    own[fits[label_of_frame] & (parent >= 0) & is_engine[parent]] = 0
    beside = _path.innermost(parent, own)
    beside[is_engine] = 0
    return np.maximum(beside, 0)


def _picked(meanings: list[Meaning], frame_parent: Int32, label_of_frame: Int32) -> Int32:
    """The frame of the call that each frame is a part of, -1 for none."""
    ranks = [
        next((rank for rank, fits in enumerate(_RANKS) if fits(meaning)), _path.NO_RANK)
        for meaning in meanings
    ]
    again = np.array([meaning.recompute for meaning in meanings], bool)[label_of_frame]
    parent = np.where(again, np.int32(-1), frame_parent)  # no call of the node around it
    return _path.best(parent, label_of_frame, np.array(ranks, np.uint8))


def _instances(found: Attribution, picked: Int32) -> Int32:
    """One backward call for all that belong to one forward call, by frame.

    The nodes that one forward call made (of a linear's product, of its bias) do its backward work
    together. A graph that is gone through again does it again: the second backward call of the same
    forward frame is an instance of its own.
    """
    frames = np.arange(len(picked), dtype=np.int32)
    calls = np.flatnonzero(found.backward_of_frame == frames).astype(np.int32)
    forward = found.meaning_of_frame[calls]
    first_time = _share.ordinal(forward, len(frames)) == 0
    calls, forward_call = calls[first_time], picked[forward[first_time]]
    first_of = np.full(len(frames) + 1, -1, np.int32)  # the last for forward call -1
    first_of[forward_call[::-1]] = calls[::-1]
    known = forward_call >= 0
    frames[calls[known]] = first_of[forward_call[known]]
    return frames
