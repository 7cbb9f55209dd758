"""Names of kernels that torch.compile has generated, to what they compute for one element.

`triton_red_fused_add_mean_mul_pow_rsqrt_0`: the kind (`poi` element by element, `red` and `per`
with a sum along one dimension, `tem` a template of a product, `for` over lists of tensors), the
operators in alphabetical order, each once, and a number. Source: torch/_inductor (the name of a
kernel in codegen/triton.py, `get_fused_kernel_name` in utils.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops.registry import ATEN, find, work

__all__ = ["Fused", "flops_of_an_element", "read_name"]

_NAME: Final = re.compile(r"triton_([a-z]+)(?:_fused)?(?:_(.*?))?(?:_?\d+)?\Z", re.DOTALL)

# A tensor to try operators on, large enough that what is done once does not count.
_X: Final = Tensor((64, 64), "float32")
_W: Final = Tensor((64,), "float32")

# Operators whose arguments are not tensors only: a call of each.
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
# Products, convolutions and attention are calls of libraries; what is left of them in a kernel is
# a bias.
_LEFT: Final = {"addmm": 1, "baddbmm": 1, "convolution": 1}
_POWER: Final = 1  # a square, as nearly all are, becomes a product
_CALLED: Final = re.compile(r"(_\w+_)?(mm|bmm|matmul|linear|einsum)\Z|\w*attention\w*|\w*conv\w*")
_MOST_OPERANDS: Final = 4


class Fused(NamedTuple):
    """What a name tells: the kind of the kernel ("": not known), and the operators in it."""

    kind: str
    operators: tuple[str, ...]


@lru_cache(1024)
def read_name(name: str) -> Fused:
    """The parts of a name. Operators that fastprof has no formula of are left out."""
    match = _NAME.match(name)
    if match is None:
        return Fused("", ())
    return Fused(match[1], tuple(_operators((match[2] or "").split("_"))))


def _operators(words: list[str]) -> Iterable[str]:
    # Names of operators have underscores too: the longest that is known comes first.
    start = 0
    while start < len(words):
        for end in range(len(words), start, -1):
            name = "_".join(words[start:end])
            if name and find(Call(ATEN, name)) is not None:
                yield name
                start = end
                break
        else:
            start += 1


def flops_of_an_element(operators: Iterable[str]) -> int:
    """FLOPs for one element: each operator done once, by its own formula."""
    return sum(map(_flops, operators))


@lru_cache(1024)
def _flops(name: str) -> int:
    if name in _LEFT or _CALLED.match(name):
        return _LEFT.get(name, 0)
    if name == "pow":
        return _POWER
    alike = [(_X,) * n for n in range(1, _MOST_OPERANDS + 1)]
    for values in [_CALLS[name]] if name in _CALLS else alike:
        done = work(Call(ATEN, name, tuple(Arg("", each) for each in values)), "fprop")
        if done is not None and done.cost.flops is not None:
            return done.cost.flops // (64 * 64)
    return 0
