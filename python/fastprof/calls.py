"""Which call each kernel works for.

A kernel's call is the outermost range around it whose operator has a model; with no model anywhere,
the outermost. A backward kernel works for the forward call that its autograd node came from.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastprof import _calls, _path, _share, ops
from fastprof._take import distinct, take
from fastprof.attribute import Attribution
from fastprof.call import Call
from fastprof.markers import Kind, Meaning, op_name
from fastprof.trace import Int32, Trace

Bools = npt.NDArray[np.bool_]
Flags = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Named:
    """A distinct call as the report names it; `call` is None when its arguments are not known."""

    mod: str | None
    op: str | None
    call: Call | None


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
    group : int32 [kernels], which instance of the call, 0 .. n_groups - 1, -1 for none
    """

    named: list[Named]
    call: Int32
    backward: Bools
    group: Int32
    n_groups: int


def find_calls(trace: Trace, found: Attribution, meaning: Int32) -> CallsOfKernels:
    """Find the call of every kernel.

    meaning : [kernels] the frame that says what a kernel is for: its own, or its forward call's
    """
    label_of_frame = take(trace.ranges.label, found.frame_range)
    picked = _picked(found, label_of_frame)
    label, backward, group, n_groups = _calls.find(
        found.frame_of_kernel,
        meaning,
        label_of_frame,
        picked,
        found.backward_of_frame,
        _instances(found, picked),
        *_known(found.meanings),
    )
    used, place = distinct(label, len(found.meanings))
    return CallsOfKernels(
        named=[named(found.meanings[number]) for number in used if number >= 0],
        call=place - np.int32(1) if used and used[0] < 0 else place,
        backward=backward,
        group=group,
        n_groups=n_groups,
    )


_ANNOUNCED = re.compile(
    r"Optimizer\.\w+#|DistributedDataParallel\.forward\Z|DataParallel\.forward\Z"
)

# Which ranges may be a kernel's call, the best first.
_RANKS: list[Callable[[Meaning], bool]] = [
    lambda m: m.call is not None and m.has_arguments and ops.has_model(m.call),
    lambda m: m.kind == Kind.ARGUMENT,
    lambda m: m.call is not None and ops.find(m.call) is not None,  # of unknown shapes
    lambda m: m.kind == Kind.TORCH,
    # What torch announces of itself around work that is no operator of its own: a fused optimizer.
    lambda m: m.kind == Kind.USER and _ANNOUNCED.match(m.name) is not None,
]


def _known(meanings: list[Meaning]) -> tuple[Flags, Flags]:
    """Of each label, whether its cost is known; whether that of its backward pass is not.

    Where a backward kernel's own operator is of the first kind and its forward call of the second,
    its own tells more: `convolution_backward` holds sizes from which a forward call's strides
    follow.
    """
    calls = [meaning.call if meaning.has_arguments else None for meaning in meanings]
    known = [call is not None and ops.has_model(call) for call in calls]
    unknown_backward = [call is None or ops.work(call, "bprop") is None for call in calls]
    return np.array(known, np.uint8), np.array(unknown_backward, np.uint8)


def _picked(found: Attribution, label_of_frame: Int32) -> Int32:
    """The frame of the call that each frame is a part of, -1 for none."""
    ranks = [
        next((rank for rank, fits in enumerate(_RANKS) if fits(meaning)), _path.NO_RANK)
        for meaning in found.meanings
    ]
    return _path.best(found.frame_parent, label_of_frame, np.array(ranks, np.uint8))


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
