"""Kernels fused by torch.compile.

Their FLOPs and bytes follow from their names and tensors.
`triton_red_fused_add_mean_mul_pow_rsqrt_0`: the kind (`poi` elementwise, `red` and `per` with a
reduction along one dimension, `tem` a matrix-product template, `for` over lists of tensors), the
operators in alphabetical order, each once, and a number. Source: torch/_inductor (the name of a
kernel in codegen/triton.py, `get_fused_kernel_name` in utils.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.out_forms import ATEN
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import home_of, operators, work
from fastprof.ops.tensor import byte_count, elements, moved, texts

_NAME: Final = re.compile(r"triton_([a-z]+)(?:_fused)?(?:_(.*?))?(?:_?\d+)?\Z", re.DOTALL)

# A tensor to evaluate formulas on, large enough that constant costs are negligible.
_X: Final = Tensor((64, 64), "float32")
_W: Final = Tensor((64,), "float32")

# A call of each operator with non-tensor arguments.
_CALLS: Final[dict[str, tuple[Any, ...]]] = {
    "_log_softmax": (_X, -1, False),
    "_softmax": (_X, -1, False),
    "amax": (_X, (-1,), False),
    "amin": (_X, (-1,), False),
    "argmax": (_X, -1, False),
    "cumsum": (_X, -1),
    "mean": (_X, (-1,), False),
    "native_dropout": (_X, 0.5, True),
    "native_group_norm": (Tensor((4, 16, 64), "float32"), None, None, 4, 16, 64, 4, 1e-5),
    "native_layer_norm": (_X, (64,), _W, _W, 1e-5),
    "sum": (_X, (-1,), False),
    "var": (_X, (-1,), None, False),
    "var_mean": (_X, (-1,), None, False),
}
# Products, convolutions and attention are library calls; only a bias remains of them in a kernel.
_LEFT: Final = {"addmm": 1, "baddbmm": 1, "convolution": 1}
_POWER: Final = 1  # nearly all are squares, which become products
_CALLED: Final = re.compile(r"(_\w+_)?(mm|bmm|matmul|linear|einsum)\Z|\w*attention\w*|\w*conv\w*")
_MOST_OPERANDS: Final = 4


class Fused(NamedTuple):
    """A parsed name: the kind of the kernel ("": unknown) and its operators."""

    kind: str
    operators: tuple[str, ...]


@lru_cache(1024)
def read_name(name: str) -> Fused:
    """Parse a name. Operators without a formula are omitted."""
    match = _NAME.match(name)
    if match is None:
        return Fused("", ())
    return Fused(match[1], tuple(_operators((match[2] or "").split("_"))))


def _operators(words: list[str]) -> Iterable[str]:
    # Operator names also contain underscores: try the longest known name first.
    start = 0
    while start < len(words):
        for end in range(len(words), start, -1):
            name = "_".join(words[start:end])
            if name and home_of(Call(ATEN, name)) is not None:
                yield name
                start = end
                break
        else:
            start += 1


def flops_of_an_element(operators: Iterable[str]) -> int:
    """FLOPs per element: each operator once, by its formula."""
    return sum(map(_flops, operators))


@lru_cache(1024)
def _flops(name: str) -> int:
    if name in _LEFT or _CALLED.match(name):
        return _LEFT.get(name, 0)
    if name == "pow":
        return _POWER
    alike = [(_X,) * n for n in range(1, _MOST_OPERANDS + 1)]
    for values in [_CALLS[name]] if name in _CALLS else alike:
        done = work(Call(ATEN, name, tuple(Arg("", value) for value in values)), "fprop")
        if done is not None and done.cost.flops is not None:
            return done.cost.flops // (64 * 64)
    return 0


# A buffer with this number of concatenated parts, such as from one product for several layers, is
# read entirely; of other larger buffers, a kernel reads a slice.
_MOST_PARTS: Final = 4


def iterations(tensors: Sequence[Tensor], sizes: Sequence[int]) -> int:
    """Number of elements a kernel iterates over: the product of its extents.

    Parameters
    ----------
    tensors : sequence of Tensor
    sizes : sequence of int
        The numbers after the tensors: dynamic sizes, then the extents (ynumel, xnumel, r0_numel).
        Empty if not recorded.

    Returns
    -------
    int
        The product of the trailing numbers that equals the size of a tensor; else the largest
        product that does not exceed the largest tensor; without numbers, the size of the largest
        tensor.
    """
    counts = {elements(tensor.shape) for tensor in tensors}
    largest = max(counts)
    products = [prod(sizes[start:]) for start in range(len(sizes))]
    if len(products) == 1:
        return products[0]
    exact = [product for product in products if product in counts]
    possible = [product for product in products if product <= largest]
    return next(iter(exact or possible), largest)


def touched_bytes(tensors: Sequence[Tensor], count: int) -> int | None:
    """Bytes of the tensors, each limited to `count` elements if that is a slice of it."""
    return add_known(*(byte_count(_touched(tensor, count), tensor.dtype) for tensor in tensors))


def _touched(tensor: Tensor, count: int) -> int:
    shape = tensor.shape
    if tensor.strides is not None and len(tensor.strides) == len(shape):
        shape = tuple(size for size, step in zip(shape, tensor.strides, strict=True) if step)
    held = 0 if 0 in tensor.shape else elements(shape)
    parts, left = divmod(held, max(count, 1))
    return held if held <= count or (not left and parts <= _MOST_PARTS) else count


def product_flops(tensors: Sequence[Tensor]) -> int | None:
    """FLOPs of a matrix-product template; None if its tensors do not form one.

    The operands are adjacent, [.., m, k] and [.., k, n]; a later tensor is [.., m, n].
    """
    for i, (left, right) in enumerate(pairwise(tensors)):
        a, b = left.shape, right.shape
        if len(a) != len(b) or len(a) not in (2, 3) or a[-1] != b[-2] or a[:-2] != b[:-2]:
            continue
        outputs = prod(a[:-1]) * b[-1]
        if any(elements(tensor.shape) == outputs for tensor in tensors[i + 2 :]):
            return 2 * outputs * a[-1]
    return None


# Kinds of kernels with a single iteration space.
_ONE_SPACE: Final = frozenset({"poi", "red", "per"})


# "triton" stands for every triton_poi_*, triton_red_*, triton_per_*, triton_tem_* (registry).
@operators("""
    A kernel generated by torch.compile, called with tensors and then its extents.
    FLOPs: those of each operator in its name, once per iterated element (the product of its
    extents); for a matrix-product template, a multiply-add for each output and inner element;
    unknown for kernels over lists of tensors.
    Bytes: each tensor once, read or written. A tensor larger than the iteration space counts with
    that size, unless it is two to four times as large: concatenated parts that are all read.

    Marked as an estimate. FLOPs are too low if an operator is fused several times, because the name
    contains it once, and too high if it applies only to sums. Bytes are too low for tensors read
    and written in place or read in several passes, and too high if only a part of a smaller tensor
    is used.
    (tensors*, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _): aten::triton
""")
def triton(tensors: Tensors, *, call: Call) -> Answer:
    if not tensors:
        raise CannotModel("no tensor among the arguments")
    kind, operators = read_name(call.op)
    if kind not in _ONE_SPACE:
        flops = product_flops(tensors) if kind == "tem" else None
        return Cost(flops, moved(*tensors), exact=False), texts(*tensors)
    count = iterations(tensors, _numbers(call))
    flops = count * flops_of_an_element(operators)
    return Cost(flops, touched_bytes(tensors, count), exact=False), texts(*tensors)


def _numbers(call: Call) -> list[int]:
    # The numbers after the last tensor.
    numbers: list[int] = []
    for arg in call.args:
        if isinstance(arg.value, Tensor):
            numbers.clear()
        elif type(arg.value) is int and arg.value > 0:
            numbers.append(arg.value)
    return numbers
