"""The call of each kernel, and the call that determines its cost.

The call of a kernel is the outermost operator around it that has a model; without a model, the
outermost operator. The call of a backward kernel is the forward call that created its autograd
node.

The report shows the call. Its cost comes from the matrix products, convolutions and attention
inside of it if their sizes and types are known: backward passes differ from node to node, autocast
calls an operator within itself in another type, DTensor and vmap with other sizes, and fused layers
run several products.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Final, overload

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _calls, _path
from fastprof._core._pools import pairs
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.model.arrays import Bools, Int32
from fastprof.model.call import Call, Tensor
from fastprof.model.columns import Values
from fastprof.model.markers import Kind, Meaning, op_name
from fastprof.model.trace import Trace
from fastprof.ops.cost import add_known
from fastprof.ops.dtypes import canonical_type
from fastprof.profile.call_results import CallKinds, InferredResults, infer_results, with_batches
from fastprof.profile.callpath.attribution import Attribution

ByteFlags = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Named:
    """A distinct call as shown in the report; `call` is None if its arguments are unknown.

    `exact` is False if its result, and therefore its cost, is an estimate.
    """

    mod: str | None
    op: str | None
    call: Call | None
    exact: bool = True


def named(meaning: Meaning, exact: bool = True) -> Named:
    """The call of a marker or of a torch range, as shown in the report.

    exact : False if the result of the call is an estimate
    """
    call = meaning.call
    if meaning.kind == Kind.ARGUMENT and call is not None:
        return Named(call.mod, call.op, call, exact)
    known = call if meaning.has_arguments else None
    # Without a namespace, the name is from ATen (in old releases) or of unknown origin.
    spaced = call is not None and ("::" in meaning.name or call.mod != "aten")
    qualified = spaced and not meaning.backward
    return Named(call.mod if qualified and call else None, op_name(meaning), known, exact)


class NamedCalls(Sequence[Named]):
    """The calls of some labels, made when they are asked for.

    meanings : [labels]
    labels : int32 [calls]
    estimated : labels whose result is an estimate
    """

    def __init__(
        self, meanings: Sequence[Meaning], labels: Int32, estimated: frozenset[int]
    ) -> None:
        self._meanings, self._labels, self._estimated = meanings, labels, estimated

    def __len__(self) -> int:
        return len(self._labels)

    @overload
    def __getitem__(self, place: int) -> Named: ...
    @overload
    def __getitem__(self, place: slice) -> NamedCalls: ...
    def __getitem__(self, place: int | slice) -> Named | NamedCalls:
        labels = self._labels[place]
        if isinstance(place, slice):
            return NamedCalls(self._meanings, labels, self._estimated)
        label = int(labels)
        return named(self._meanings[label], label not in self._estimated)


@dataclass(frozen=True)
class CallsOfKernels:
    """The call of every kernel.

    Parameters
    ----------
    named : the distinct calls
    kinds : the distinct kinds, whose calls are indices into `named`
    kind : int32 [kernels], index into `kinds`
    group : int32 [kernels], the instance of `work`, -1 for none
    taken : uint8 [groups], the number of main parts that operators inside of the call run
    instance : int32 [kernels], the instance of `call`, -1 for none; forward and backward pass of a
        call are two instances
    """

    named: Sequence[Named]
    kinds: CallKinds
    kind: Int32
    group: Int32
    taken: ByteFlags
    instance: Int32

    @property
    def n_groups(self) -> int:
        return len(self.taken)

    @property
    def call(self) -> Int32:
        """[kernels] The call of each kernel, an index into `named`, -1 for none."""
        return take(np.ascontiguousarray(self.kinds.calls[:, 0]), self.kind)

    @property
    def backward(self) -> Bools:
        """[kernels] Whether the kernel belongs to the backward pass of its call."""
        return take(self.kinds.backward, self.kind)


def find_calls(trace: Trace, attribution: Attribution, meaning: Int32) -> CallsOfKernels:
    """Find the call of every kernel.

    meaning : [kernels] the kernel's frame, or of backward kernels that of the forward call
    """
    inferred = infer_results(trace, attribution)
    kinds, kind, group, taken, instance = _found(attribution, meaning, inferred)
    meanings, kinds, kind, batch = with_batches(
        attribution,
        inferred.meanings,
        inferred.label_of_frame,
        kinds,
        kind,
    )
    for launch in (attribution.replay_of_kernel, batch):
        if launch is not None:
            group, taken = _apart(group, launch, taken)
            pair, _ = pairs(instance, launch)
            instance = np.where(instance >= 0, pair, np.int32(-1))
    is_used = np.zeros(len(meanings) + 1, bool)
    is_used[kinds.calls] = True  # also the last, of label -1
    used = np.flatnonzero(is_used[:-1]).astype(np.int32)
    number = np.full(len(is_used), -1, np.int32)
    number[used] = np.arange(len(used))
    return CallsOfKernels(
        named=NamedCalls(meanings, used, inferred.estimated),
        kinds=CallKinds(number[kinds.calls], kinds.backward, kinds.gradient),
        kind=kind,
        group=group,
        taken=taken,
        instance=instance,
    )


def _found(
    attribution: Attribution, meaning: Int32, inferred: InferredResults
) -> tuple[CallKinds, Int32, Int32, ByteFlags, Int32]:
    """`kinds`, of labels, `kind`, `group`, `taken` and `instance` of CallsOfKernels."""
    meanings, label_of_frame = inferred.meanings, inferred.label_of_frame
    n_new = len(meanings) - len(attribution.meanings)
    wanted = np.append(attribution.around_work, np.ones(n_new, bool))
    in_forward = attribution.around_forward
    in_forward = np.append(in_forward, np.full(n_new, in_forward.any()))
    bits = np.zeros(len(meanings), np.uint16)
    ranks = np.full(len(meanings), _path.NO_RANK, np.uint8)
    calls: list[Call | None] = [None] * len(meanings)
    flops: list[int | None] = [None] * len(meanings)
    # In one loop, as registry.work keeps some thousands of calls.
    for i in np.flatnonzero(wanted).tolist():
        m = meanings[i]
        ranks[i] = _rank(m)
        is_gradient = m.backward and not m.autograd_node
        bits[i] = cost_bits(m.call, m.has_arguments, is_gradient, bool(in_forward[i]))
        if m.call is not None and m.has_arguments:
            calls[i], flops[i] = m.call, flops_of_products(m.call)
    of_calls = [None if call is None else _sizes(call) for call in calls]
    complete = [call is not None and is_complete(call) for call in calls]
    is_known = np.array(complete, bool) & (bits & _calls.KNOWN != 0)
    picked = _picked(meanings, ranks, attribution.frame_parent, label_of_frame)
    kinds, kind, group, taken, instance = _calls.find(
        attribution.frame_of_kernel,
        meaning,
        (
            attribution.frame_parent,
            label_of_frame,
            attribution.frame_range,
            picked,
            _path.nearest(attribution.frame_parent, label_of_frame, is_known.view(np.uint8)),
            attribution.backward_of_frame,
            _calls.instances(attribution.backward_of_frame, attribution.meaning_of_frame, picked),
        ),
        bits,
        (
            _numbers([call and (call.mod, call.op) for call in calls]),
            _numbers(
                [
                    None if call is None else (call.mod, call.op, *map(bool, sizes or ()))
                    for call, sizes in zip(calls, of_calls, strict=True)
                ]
            ),
            _numbers(of_calls),
            _numbers([None if call is None else _types(call) for call in calls]),
            _numbers(flops),
        ),
        _outside_nodes(meanings, attribution.frame_parent, label_of_frame),
    )
    return CallKinds(*kinds), kind, group, taken, instance


def outermost_calls(attribution: Attribution, frame: Int32) -> Values:
    """The meaning of the call around each frame, as the call of a kernel launched in it.

    frame : [n] frames of `found`, -1 for none
    """
    label_of_frame = take(attribution.ranges.label, attribution.frame_range)
    meaning = take(attribution.meaning_of_frame, frame)
    outside = _outside_nodes(attribution.meanings, attribution.frame_parent, label_of_frame)
    if outside is not None:
        meaning = np.where(take(outside, frame, False), frame, meaning)
    ranks = np.array([_rank(m) for m in attribution.meanings], np.uint8)
    picked = _picked(attribution.meanings, ranks, attribution.frame_parent, label_of_frame)
    return Values(take(label_of_frame, take(picked, meaning)), attribution.meanings)


def _apart(group: Int32, launch: Int32, taken: ByteFlags) -> tuple[Int32, ByteFlags]:
    """Separate groups by graph launch: each launch repeats the calls of its capture."""
    pair, _ = pairs(group, launch)
    apart = np.where(group >= 0, pair, np.int32(-1))
    taken_apart = np.zeros(int(apart.max(initial=-1)) + 1, np.uint8)
    known = group >= 0
    taken_apart[apart[known]] = taken[group[known]]
    return apart, taken_apart


# Ranges that torch opens around work outside of its operators, such as a fused optimizer.
ANNOUNCED: Final = regex(
    r"Optimizer\.\w+#|DistributedDataParallel\.forward\Z|DataParallel\.forward\Z"
)


def _rank(m: Meaning) -> int:
    """The preference for a range as the call of a kernel: the lowest number is preferred."""
    if m.kind == Kind.USER:
        return 5 if ANNOUNCED.match(m.name) else _path.NO_RANK
    if m.call is not None and m.has_arguments and ops.has_model(m.call):
        return 0
    if m.kind == Kind.ARGUMENT:
        return 1
    if m.call is not None and ops.home_of(m.call) is not None:
        return 2  # of unknown shapes
    if m.kind != Kind.TORCH:
        return _path.NO_RANK
    # TorchScript functions, custom autograd functions and nodes: operators inside are preferred.
    return 3 if "::" in m.name and not m.autograd_node else 4


# Kernel kinds that run matrix products, convolutions and attention.
FAMILY_KERNELS: Final = frozenset({"gemm", "convolution", "attention"})
_FAMILY_MODULES: Final = tuple(
    f"{ops.__name__}.{family}"
    for family in (
        *("matrix.", "convolution.", "attention."),
        *("libraries.xformers", "libraries.transformer_engine"),  # their attention
    )
)
_ONE_GRADIENT: Final = regex(r"_backward_(?:input|weights?|bias)\Z")


def cost_bits(
    call: Call | None, has_arguments: bool, gradient: bool = False, has_backward: bool = True
) -> int:
    """Properties of a call that determine its cost, as bits of `_calls`.

    gradient : whether it is an operator of a backward pass
    has_backward : whether a backward pass may be recorded; without one, the bits of it are those of
        an unknown one
    """
    if call is None:
        return _calls.UNKNOWN_BACKWARD
    work = ops.work(call, "fprop") if has_arguments else None
    backward = ops.work(call, "bprop") if has_arguments and has_backward else None
    home = ops.home_of(call)
    bits = (
        _calls.GRADIENT * gradient
        | _calls.UNKNOWN_BACKWARD * (backward is None)
        | _calls.FORMULA * (home is not None)
    )
    if work is None:
        return bits | _calls.FAMILY * (home is not None and home.startswith(_FAMILY_MODULES))
    mains = [part.kernels for part in work.parts if part.role != "bias"]
    family = bool(mains) and all(kernels and kernels <= FAMILY_KERNELS for kernels in mains)
    return (
        bits
        | _calls.KNOWN
        | _calls.FAMILY * family
        | _calls.MATRICES * (family and all(kernels == {"gemm"} for kernels in mains))
        | _calls.MOVES * (add_known(*[part.cost.flops for part in work.parts]) == 0)
        | _calls.BIAS * _has_others(work)
        | _calls.BIAS_BACKWARD * _has_others(backward)
    )


def is_complete(call: Call | None) -> bool:
    """False for a single gradient of a convolution: the enclosing operator has all sizes."""
    return call is not None and _ONE_GRADIENT.search(call.op) is None


def _has_others(work: ops.Work | None) -> bool:
    return work is not None and any(not part.kernels <= FAMILY_KERNELS for part in work.parts)


def _types(call: Call | None) -> frozenset[str] | None:
    """The floating-point types of a call's tensors; None if it has none."""
    tensors = [arg.value for arg in call.args if isinstance(arg.value, Tensor)] if call else []
    # A number converted to a tensor has a type that is not that of the call.
    names = {canonical_type(tensor.dtype) or "" for tensor in tensors if tensor.shape}
    return frozenset(name for name in names if "float" in name) or None


def _sizes(call: Call) -> tuple[tuple[int, ...], ...]:
    """The shapes of a call's arguments, () for numbers and what is not recorded."""
    sizes: list[tuple[int, ...]] = []
    for arg in call.args:
        for value in arg.value if isinstance(arg.value, tuple) else (arg.value,):
            sizes.append(value.shape if isinstance(value, Tensor) else ())
    return tuple(sizes)


def flops_of_products(call: Call) -> int | None:
    """FLOPs of a call's main parts, without a bias; None if unknown or of a single gradient."""
    work = ops.work(call, "fprop") if is_complete(call) else None
    mains = [part.cost.flops for part in work.parts if part.role != "bias"] if work else [None]
    return add_known(*mains)


def typed_like(call: Call, other: Call) -> Call:
    """A call without types, with the type of another call if that has a single one.

    Ranges of emit_nvtx record sizes only; the marker of the enclosing forward call records types.
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
    """An id for each distinct value, -1 for None."""
    numbers: dict[Hashable, int] = {}
    return np.array(
        [-1 if value is None else numbers.setdefault(value, len(numbers)) for value in values],
        np.int32,
    )


# Operators that adapt a gradient to its input (validate_outputs in engine.cpp).
FITS_GRADIENT: Final = frozenset({"sum", "sum_to_size", "to", "_to_copy", "view", "reshape"})


def _outside_nodes(meanings: list[Meaning], parent: Int32, label_of_frame: Int32) -> Bools | None:
    """[frames] Work of the engine for a node but outside of it: sums of gradients, hooks.

    This work does not belong to the backward pass of the node's forward call, unless it adapts a
    gradient to shape and type of the input, as for a broadcast bias. If the node itself was not
    recorded, all work of the engine counts as the node's. None if the engine has no ranges.
    """
    if not any(m.evaluates for m in meanings):
        return None
    bits = [
        _calls.ENGINE * m.evaluates
        | _calls.NODE * (m.autograd_node and not m.evaluates)
        | _calls.FITS * (m.call is not None and m.call.op in FITS_GRADIENT)
        for m in meanings
    ]
    return _calls.outside(parent, label_of_frame, np.array(bits, np.uint8))


def _picked(
    meanings: list[Meaning], ranks: ByteFlags, frame_parent: Int32, label_of_frame: Int32
) -> Int32:
    """[frames] The frame of the call, -1 for none.

    ranks : [labels], of `_rank`
    """
    again = np.array([meaning.recompute for meaning in meanings], bool)
    parent = frame_parent
    if again.any():  # not part of a call around the node
        parent = np.where(take(again, label_of_frame), np.int32(-1), frame_parent)
    return _path.best(parent, label_of_frame, ranks)
