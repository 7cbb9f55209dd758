"""FLOPs and bytes of reductions: one formula and a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastprof._system.classes import dataclass
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import EXPONENTIAL, LOGARITHM, Dims, left
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import TORCH, op
from fastprof.ops.tensor import (
    Dtype,
    bool_result,
    byte_count,
    chosen,
    count_result,
    elements,
    float_result,
    parts,
    same,
    sum_result,
    tensor_bytes,
    tensor_text,
)


@dataclass(frozen=True, slots=True)
class ReductionGradient:
    """The backward pass of a reduction.

    Parameters
    ----------
    flops : int
        FLOPs for one element of the input.
    reads_input : bool
        Whether the input is read again.
    from_outputs : int
        Number of tensors of the output's size that are read: its gradient and the output.
    finish : int
        FLOPs for one output.
    """

    flops: int
    reads_input: bool
    from_outputs: int
    finish: int = 0


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction.

    Parameters
    ----------
    flops : int
        FLOPs for one element of the input.
    result : callable
        Function from the input's type to the output's.
    gradient : Gradient or None
        None if there is no backward pass.
    finish : int
        Additional FLOPs for one output.
    complex_flops : int or None
        FLOPs for one complex element; None: twice those of a real element.
    says : str
        The FLOPs in words, forward and backward.
    """

    flops: int
    result: Callable[[str | None], str | None]
    gradient: ReductionGradient | None
    finish: int = 0
    complex_flops: int | None = None
    says: str = ""


def reduction(what: Reduction, x: Tensor, dim: Dims, dtype: Dtype, direction: str) -> Answer:
    """Cost of a reduction of x over dimensions; None for all."""
    outputs, count = left(x.shape, dim), elements(x.shape)
    result = chosen(dtype, what.result(x.dtype))
    written = None if outputs is None else byte_count(outputs, result)
    twice = parts(x.dtype)
    if direction == "fprop":
        flops = what.flops * twice
        if twice == 2 and what.complex_flops is not None:
            flops = what.complex_flops
        finish, moved = what.finish * twice, add_known(tensor_bytes(x), written)
    elif what.gradient is None:
        raise CannotModel("no backward pass")
    else:
        gradient = what.gradient
        flops, finish = gradient.flops * twice, gradient.finish * twice
        again = tensor_bytes(x) if gradient.reads_input else 0
        moved = add_known(byte_count(count, x.dtype), again, *[written] * gradient.from_outputs)
    # At least one output; the number is unknown if the dimensions are.
    total = count * flops + (1 if outputs is None else outputs) * finish
    exact = outputs is not None or not finish
    return Cost(total, moved, exact), tensor_text(x)


_COPIED: Final = ReductionGradient(0, reads_input=False, from_outputs=1)
_SCALED: Final = ReductionGradient(1, reads_input=False, from_outputs=1)

# (names, whether it has an argument dtype=, reduction). The gradient of a selected value is divided
# among equal elements: a mask, its sum, and a product.
_ROWS: Final = (
    (
        "sum",
        True,
        Reduction(1, sum_result, _COPIED, says="an addition for each element; backward none"),
    ),
    (
        "nansum",
        True,
        Reduction(
            2,
            sum_result,
            ReductionGradient(2, reads_input=True, from_outputs=1),
            says="a test for NaN and an addition for each element; backward a test and a product",
        ),
    ),
    (
        "mean",
        True,
        Reduction(
            1,
            same,
            _SCALED,
            finish=1,
            says="an addition for each element and a division for each output; backward a product"
            " for each element",
        ),
    ),
    (
        "nanmean",
        True,
        Reduction(
            4,
            same,
            ReductionGradient(3, reads_input=True, from_outputs=1),
            finish=1,
            says="two tests for NaN and two additions (sum and count) for each element, a division"
            " for each output; backward a test and two products for each element",
        ),
    ),
    (
        "prod",
        True,
        Reduction(
            1,
            sum_result,
            ReductionGradient(2, reads_input=True, from_outputs=2),
            complex_flops=6,
            says="a product for each element; backward a product and a division",
        ),
    ),
    (
        "amax amin",
        False,
        Reduction(
            1,
            same,
            ReductionGradient(3, reads_input=True, from_outputs=2),
            says="a comparison for each element; backward a comparison, an addition and a product",
        ),
    ),
    (
        "argmax argmin",
        False,
        Reduction(1, count_result, None, says="a comparison for each element; no backward pass"),
    ),
    (
        "any all _is_all_true _is_any_true",
        False,
        Reduction(1, bool_result, None, says="a logical operation for each element; no backward"),
    ),
    (
        "logsumexp special_logsumexp",
        False,
        Reduction(
            EXPONENTIAL + 3,
            float_result,
            ReductionGradient(EXPONENTIAL + 2, reads_input=True, from_outputs=2),
            finish=LOGARITHM + 1,
            says="maximum, difference, exponential and addition for each element, a logarithm and"
            " an addition for each output; backward a difference, an exponential and a product for"
            " each element",
        ),
    ),
)

_DOCUMENTATION: Final = """Reduction of x [..] over the dimensions dim (all without them) -> [..].

    FLOPs: {says}.
    Bytes: x read and the outputs written, in their own types; backward the outputs' gradients (and
    x, and the outputs, if needed) read and the gradient of x written.

    A complex element counts its real operations: 2 for an addition. If dim is not recorded,
    per-output FLOPs count for one output, and the cost is an estimate. The gradient of a sum is a
    view; if a kernel runs, it copies it. n operations for n elements, as in PyProf.
    """


def _register(name: str, typed: bool, what: Reduction) -> None:
    # One formula per name. ATen has two overloads, (x, dtype) and (x, dim, keepdim, dtype),
    # distinguished by the number of arguments: `second` is dim only if keepdim follows.
    def formula(
        x: Tensor,
        dim: Dims = None,
        keepdim: bool | Unknown | None = None,
        dtype: Dtype = None,
        axis: Dims = None,
        second: Ints | str | Unknown | None = None,
        *,
        direction: str,
    ) -> Answer:
        if keepdim is None and second is not None:
            dtype = dtype if isinstance(second, tuple) else second
        elif isinstance(second, str):
            raise CannotModel(f"no dimension {second!r}")
        else:
            dim = second if second is not None else dim
        return reduction(what, x, axis if dim is None else dim, dtype, direction)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = _DOCUMENTATION.format(says=what.says)
    chosen_type = ", dtype" if typed else ""
    op(
        TORCH,
        f"{name}(x, dim, keepdim, dtype, axis)" if typed else f"{name}(x, dim, keepdim, axis=axis)",
        aten=(f"{name}(x, second, keepdim{chosen_type}, ...)",),
    )(formula)


for _names, _typed, _what in _ROWS:
    for _each in _names.split():
        _register(_each, _typed, _what)
