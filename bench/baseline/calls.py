"""The call of each kernel, the kernels that share a call, and the source of the cost.

A kernel's call is the outermost range around it whose operator has a formula in fastprof.ops; with
none anywhere, the outermost marker or torch range. A backward kernel works for the forward call.
Its cost is that of a product inside the call if the sizes of the product are known. Results that
only surrounding calls show (fastprof.profile.call_results) are not looked up.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

from bench.baseline.frames import Frame
from bench.baseline.links import backward_call, meaning_of
from bench.baseline.meanings import ARGUMENT, TORCH, USER, Meaning
from bench.baseline.nodes import Node
from fastprof import ops
from fastprof.model.call import Arg, Call, Tensor

ANNOUNCED = re.compile(
    r"Optimizer\.\w+#|DistributedDataParallel\.forward\Z|DataParallel\.forward\Z"
)
# One gradient of a convolution; the operator around both has more arguments.
ONE_GRADIENT = re.compile(r"_backward_(?:input|weights?|bias)\Z")
# The ranges that can be a kernel's call, best first.
RANKS: list[Callable[[Meaning], bool]] = [
    lambda m: m.call is not None and m.has_arguments and ops.has_model(m.call),
    lambda m: m.kind == ARGUMENT,
    lambda m: m.call is not None and ops.find(m.call) is not None,
    lambda m: m.kind == TORCH and "::" in m.name and not m.node,
    lambda m: m.kind == TORCH,
    lambda m: m.kind == USER and ANNOUNCED.match(m.name) is not None,
]


ALL_TAKEN = 255
FAMILY_KERNELS = {"gemm", "convolution", "attention"}
FAMILY_ROOMS = tuple(f"fastprof.ops.{room}." for room in ("matrix", "convolution", "attention"))


class KernelCall(NamedTuple):
    """The call that a kernel works for: its name in the report, the source of its cost, and its
    instance (one per execution)."""

    mod: str | None
    op: str | None
    call: Call | None  # as the report names it
    work: Call | None  # the source of the cost
    direction: str  # of that
    helper: Call | None  # the operator that the kernel runs next to the products of `work`
    instance: Frame | None
    n_taken: int  # number of the instance's main parts that operators inside it compute


NO_CALL = KernelCall(None, None, None, None, "fprop", None, None, 0)


class Around(NamedTuple):
    """A kernel and its relevant frames."""

    own: Frame | None
    forward: Frame | None
    backward: Frame | None  # the backward call around it
    instance: Frame | None
    inner: Frame | None  # the innermost operator of known cost within the call
    retyped: Frame | None  # the call that autocast makes within the call

    @property
    def call(self) -> Frame | None:
        return self.own if self.forward is None else self.forward


def find_calls(
    frames: Iterable[Frame], of_kernels: Iterable[Frame]
) -> Callable[[Frame], KernelCall]:
    """A function from a kernel's frame to its call; `frames` are those of all ranges, in order."""
    instances = backward_instances(frames)
    inside: dict[Frame, Meaning] = {}
    products: dict[Frame, set[Frame]] = defaultdict(set)

    @cache
    def around(frame: Frame) -> Around:
        own = picked(frame)
        meaning = frame if is_beside_node(frame) else meaning_of(frame)
        forward = None if meaning is frame else picked(meaning)
        backward = None if forward is None else backward_call(frame)
        instance = own if forward is None else instances.get(backward, backward) or forward
        outermost = own if forward is None else backward
        inner = innermost_known(frame, outermost)
        return Around(own, forward, backward, instance, inner, retyped(meaning))

    for frame in of_kernels:
        take_parts(around(frame), inside, products)

    @cache
    def call_of(frame: Frame) -> KernelCall:
        found = told_by(around(frame), inside)
        n_taken = ALL_TAKEN if found.instance in inside else len(products[found.instance])
        return found._replace(n_taken=n_taken)

    return call_of


def told_by(kernel: Around, inside: dict[Frame, Meaning]) -> KernelCall:
    own, forward, inner = kernel.own, kernel.forward, kernel.inner
    if does_product(kernel):
        return _named(forward, _call(inner), "fprop", None, inner)
    if forward is not None and own is not None:
        is_other = inner is not None and is_of_family(inner) and not is_of_family(forward)
        own_cost = is_known(own) and (is_other or cost_of(forward, "bprop") is None)
        if own_cost or (has_formula(own) and not has_formula(forward)):
            meaning = own.node.meaning
            shown = forward if meaning.backward and not meaning.node else own
            return _named(shown, _call(own), "fprop", None, own)
    base = kernel.call and kernel.call.node.meaning
    if kernel.retyped is not None:
        base = kernel.retyped.node.meaning
    elif kernel.call is not None and is_known(kernel.call):
        base = inside.get(kernel.call.original, base)
    direction = "fprop" if forward is None else "bprop"
    work = base.call if base is not None and base.has_arguments else None
    if helps(kernel, inside):
        return _named(kernel.call, work, direction, _call(inner), inner)
    instance = kernel.instance
    if forward is None and kernel.retyped is not None:
        instance = kernel.retyped
    return _named(kernel.call, work, direction, None, instance)


def take_parts(
    kernel: Around, inside: dict[Frame, Meaning], products: dict[Frame, set[Frame]]
) -> None:
    """Mark the frames around each product: their kernels have its cost."""
    if kernel.forward is None and kernel.retyped is not None and kernel.own is not None:
        inside[kernel.own.original] = kernel.retyped.node.meaning
    if not does_product(kernel) or kernel.backward is None:
        return
    at, product = kernel.inner, kernel.inner.original
    products[kernel.instance.original].add(product)
    while at is not kernel.backward and at is not None:
        at = at.parent
        if at is not None:
            products[at.original].add(product)
    products[product].discard(product)


def does_product(kernel: Around) -> bool:
    forward, inner = kernel.forward, kernel.inner
    if forward is None or inner is None:
        return False
    mains = [part.kernels for part in cost_of(inner, "fprop").parts if part.role != "bias"]
    is_exact = all(kernels == {"gemm"} for kernels in mains) or cost_of(forward, "bprop") is None
    return is_of_family(forward) and is_of_family(inner) and is_exact


def helps(kernel: Around, inside: dict[Frame, Meaning]) -> bool:
    """Whether a kernel only helps the products of its call, or the call in another type."""
    call, inner = kernel.call, kernel.inner
    if call is None or inner is None or not is_known(call):
        return False
    moves = cost_of(inner, "fprop").cost.flops == 0
    if kernel.retyped is None and call.original in inside and moves:
        return True
    if not is_of_family(call) or is_of_family(inner):
        return False
    work = cost_of(call, "fprop" if kernel.forward is None else "bprop")
    has_others = any(not part.kernels <= FAMILY_KERNELS for part in (work.parts if work else ()))
    return moves or not has_others


def innermost_known(frame: Frame, outermost: Frame | None) -> Frame | None:
    at: Frame | None = frame
    while at is not None:
        one_gradient = ONE_GRADIENT.search(at.node.meaning.call.op if at.node.meaning.call else "")
        if is_known(at) and not one_gradient:
            return at
        at = None if at is outermost else at.parent
    return None


def retyped(frame: Frame) -> Frame | None:
    """The outermost frame of the call that autocast makes within the call of a frame: the same
    operator, or a product within a product, with other types."""
    call, at, result = picked(frame), frame, None
    while at is not call and at is not None:
        if _is_retyped(call, at):
            result = at
        at = at.parent
    return result


def _is_retyped(call: Frame | None, frame: Frame) -> bool:
    if call is None or not is_known(call) or not is_known(frame):
        return False
    outer, own = _call(call), _call(frame)
    if None in (types(outer), types(own)) or types(outer) == types(own):
        return False
    is_same = (outer.mod, outer.op) == (own.mod, own.op)
    return is_same or (is_of_family(call) and is_of_family(frame))


def types(call: Call) -> set[str] | None:
    tensors = [arg.value for arg in call.args if isinstance(arg.value, Tensor) and arg.value.shape]
    return {t.dtype for t in tensors if t.dtype and "float" in t.dtype} or None


def typed(call: Call, other: Call) -> Call:
    """A call without types, with the type of another call if that has a single one."""
    tensors = [arg.value for arg in call.args if isinstance(arg.value, Tensor)]
    if len(types(other) or ()) != 1 or any(tensor.dtype for tensor in tensors):
        return call
    (dtype,) = types(other)
    args = [
        Arg(arg.name, Tensor(arg.value.shape, dtype)) if isinstance(arg.value, Tensor) else arg
        for arg in call.args
    ]
    return Call(call.mod, call.op, tuple(args))


def _call(frame: Frame) -> Call | None:
    return frame.node.meaning.call if frame.node.meaning.has_arguments else None


def cost_of(frame: Frame, direction: str) -> ops.Work | None:
    return _cost_of(frame.node.meaning, direction)


@cache
def _cost_of(meaning: Meaning, direction: str) -> ops.Work | None:
    return ops.work(meaning.call, direction) if meaning.has_arguments else None


def is_known(frame: Frame) -> bool:
    return cost_of(frame, "fprop") is not None


def has_formula(frame: Frame) -> bool:
    call = frame.node.meaning.call
    return call is not None and ops.find(call) is not None


def is_of_family(frame: Frame) -> bool:
    """Matrix products, convolutions and attention."""
    work, call = cost_of(frame, "fprop"), frame.node.meaning.call
    if work is None:
        formula = ops.find(call) if call else None
        return formula is not None and formula.function.__module__.startswith(FAMILY_ROOMS)
    mains = [part.kernels for part in work.parts if part.role != "bias"]
    return bool(mains) and all(kernels and kernels <= FAMILY_KERNELS for kernels in mains)


def picked(frame: Frame) -> Frame | None:
    """The frame of the call that contains a frame."""
    depth = _picked_depth(frame.node)
    if depth is None:
        return None
    around: Frame | None = frame
    for _ in range(len(frame.node.chain) - 1 - depth):
        around = around and around.parent
    return around


@cache
def _picked_depth(node: Node) -> int | None:
    """The number of labels around the one picked from a chain."""
    again = max((i for i, meaning in enumerate(node.chain) if meaning.recompute), default=0)
    for fits in RANKS:
        for depth, meaning in enumerate(node.chain):
            if depth >= again and fits(meaning):
                return depth
    return None


def is_beside_node(frame: Frame) -> bool:
    """Whether the engine ran it for a node, but not within that node."""
    around: Frame | None = frame
    while around is not None:
        if around.node.is_engine:
            return around is not frame and around.has_node
        if around.node.is_node or _fits_gradient(around):
            return False
        around = around.parent
    return False


def _fits_gradient(frame: Frame) -> bool:
    """Whether the engine converts a gradient to the shape and type of its input."""
    call, parent = frame.node.meaning.call, frame.parent
    if call is None or parent is None or not parent.node.is_engine:
        return False
    return call.op in ("sum", "sum_to_size", "to", "_to_copy", "view", "reshape")


def backward_instances(frames: Iterable[Frame]) -> dict[Frame | None, Frame]:
    """One backward call per forward call.

    The nodes that one forward call made do its backward work together, but a graph that is gone
    through again does it again.
    """
    first_of: dict[Frame, Frame] = {}
    instances: dict[Frame | None, Frame] = {}
    seen: set[Frame] = set()
    for frame in frames:
        if not frame.asks or backward_call(frame) is not frame:
            continue
        forward = meaning_of(frame)
        if forward in seen:
            continue
        seen.add(forward)
        call = picked(forward)
        if call is not None:
            instances[frame] = first_of.setdefault(call, frame)
    return instances


def _named(
    frame: Frame | None,
    work: Call | None,
    direction: str,
    helper: Call | None,
    instance: Frame | None,
) -> KernelCall:
    if frame is None:
        return NO_CALL
    meaning = frame.node.meaning
    call = meaning.call
    qualified = call is not None and "::" in meaning.name and not meaning.backward
    mod, op = call.mod if qualified else None, meaning.op
    if meaning.kind == ARGUMENT:
        mod, op = call.mod, call.op
    known = call if meaning.has_arguments else None
    if work is not None and known is not None and work is not known and helper is None:
        work = typed(work, known)
    together = None if instance is None else instance.original
    return KernelCall(mod, op, known, work, direction, helper, together, 0)
