"""FLOPs and bytes of operators over lists of tensors (`torch._foreach_*`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import POWER, SQUARE_ROOT
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.matrix.product import GEMM, Product, forward
from fastprof.ops.parameters import Number, Tensors
from fastprof.ops.pointwise.arithmetic import ARITHMETIC
from fastprof.ops.pointwise.formula import pointwise
from fastprof.ops.pointwise.functions import FUNCTIONS
from fastprof.ops.pointwise.table import COMPLEX_DIVISION, NONE, Operator, Output
from fastprof.ops.registry import TORCH, op, operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import moved, texts

Numbers = tuple[Number, ...]
Operand = Tensors | Numbers | Number | Unknown

_UNARY: Final = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg"
    " reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
# Signatures of the Python call and of the torch range, in which alpha follows the operands.
_ONE: Final = ("(first*)", "(first*)")
_TWO: Final = ("(first*, second*)", "(first*, second*)")
_NUMBER: Final = ("(first*, second)", "(first*, second)")
_TWO_ALPHA: Final = ("(first*, second*)", "(first*, second*, _)")
_NUMBER_ALPHA: Final = ("(first*, second)", "(first*, second, _)")
_BASE: Final = ("(second, first*)", "(second, first*)")
_THREE: Final = ("(first*, second*, third*, value)", "(first*, second*, third*, value)")
_WEIGHTS: Final = ("(first*, second*, third*)", "(first*, second*, third*)")
_WEIGHT: Final = ("(first*, second*, third)", "(first*, second*, third)")
_FORMS: Final = (
    (_UNARY, (_ONE,)),
    ("clamp_max clamp_min div maximum minimum mul", (_TWO, _NUMBER)),
    ("pow", (_TWO, _NUMBER, _BASE)),
    ("add sub", (_TWO_ALPHA, _NUMBER_ALPHA)),
    ("addcdiv addcmul", (_THREE,)),
    ("lerp", (_WEIGHTS, _WEIGHT)),
)

_ONE_DOC: Final = """A pointwise operator on each tensor of a list.

FLOPs: those of the operator, summed over the tensors.
Bytes: each tensor read, the results written.
"""
_MORE_DOC: Final = """A pointwise operator on lists, tensor by tensor, or on a list and numbers.

FLOPs: those of the operator, summed over the tensors.
Bytes: each tensor read, the results written; a number counts as one element for each tensor.

torch ranges record flattened lists. For add and sub, tensors whose second half repeats the shapes
of the first are assumed to be two lists, and the cost is an estimate. Lists of 0-dim tensors cannot
be separated; their cost is unknown.
"""


def _register(name: str, operator: Operator, forms: tuple[tuple[str, str], ...]) -> None:
    # The formula of one operator on lists; the pointwise operator of that name does the work.
    guessed = forms[0] is _TWO_ALPHA

    def on_list(first: Tensors) -> tuple[Cost, str]:
        return _each(operator, first, []), texts(*first)

    def on_lists(
        first: Tensors,
        second: Operand,
        third: Operand | None = None,
        value: Tensor | Operand | None = None,
    ) -> tuple[Cost, str]:
        del value  # a factor, like alpha
        total = _each(operator, first, [second] if third is None else [second, third])
        if guessed and isinstance(second, tuple) and not any(tensor.dtype for tensor in first):
            total = replace(total, exact=False)
        return total, texts(*first)

    formula = on_list if forms[0] is _ONE else on_lists
    formula.__doc__ = _ONE_DOC if forms[0] is _ONE else _MORE_DOC
    formula.__name__ = formula.__qualname__ = f"foreach_{name}"
    python = [f"_foreach_{name}{text}" for text, _ in forms]
    op(TORCH, *python, aten=[f"_foreach_{name}{text}" for _, text in forms])(formula)


def _each(operator: Operator, first: Tensors, others: list[Operand]) -> Cost:
    # The operator on each tensor of the first list.
    if len(others) + 1 < operator.needed:
        raise CannotModel(f"expected {operator.needed} operands, found {len(others) + 1}")
    if others and first and not any(each.shape or each.dtype for each in first):
        raise CannotModel("lists of numbers cannot be separated")
    columns = [_column(other, len(first)) for other in others]
    total = Cost(0, 0)
    for i, tensor in enumerate(first):
        operands = [tensor, *(column[i] for column in columns)]
        total += pointwise(operator, operands, "fprop")[0]
    return total


def _column(operand: Operand, count: int) -> list[Tensor | Number]:
    # The operand of each tensor; a number applies to all.
    if isinstance(operand, tuple):
        if len(operand) != count:
            raise CannotModel(f"lists of different lengths, {count} and {len(operand)}")
        return list(operand)
    if isinstance(operand, Unknown):
        return [Tensor(())] * count
    return [operand] * count


# The separate formula of div handles rounding, which lists do not have.
_OPERATORS: Final = {
    "div": Operator(1, ("self", "other"), Output.FLOAT, NONE, 2, COMPLEX_DIVISION),
    **{
        name: table_row.operator
        for table_row in (*ARITHMETIC, *FUNCTIONS)
        for name in table_row.aten
    },
}

for _names, _forms in _FORMS:
    for _name in _names.split():
        _register(_name, _OPERATORS[_name], _forms)
        _register(f"{_name}_", replace(_OPERATORS[_name], output=Output.FIRST), _forms)


table_row("""
    Zeros written into each tensor of a list.
    FLOPs: 0.
    Bytes: each tensor written.
    (tensors*): _foreach_zero _foreach_zero_
""")("tensors*", Traffic(0, "tensors"))


@operators("""
    (tensors*, sources*, _): _foreach_copy _foreach_copy_
    (tensors*, _): _foreach_clone
""")
def foreach_copies(tensors: Tensors, sources: Tensors | None = None) -> tuple[Cost, str]:
    """Each tensor of a list copied into that of another, or into a new one.

    FLOPs: 0.
    Bytes: each source read, each copy written, in their own types.
    """
    return Cost(0, moved(*tensors, *(tensors if sources is None else sources))), texts(*tensors)


@operators("(tensors*, ord=order, _): _foreach_norm _foreach_powsum")
def norms(tensors: Tensors, order: Number | Unknown = 2) -> tuple[Cost, str]:
    """A norm of each tensor of a list (powsum: without the root).

    FLOPs: for each element 2 (order 1, 2 or infinite: a square or absolute value, and a sum or
        comparison) or 21 (a power), and 20 for the root of each tensor.
    Bytes: each tensor read, one element of its type written for it.

    If the order is not recorded, 2 is assumed. The root is counted for every order.
    """
    single = isinstance(order, Unknown) or order in (1, 2, float("inf"), float("-inf"))
    one = 2 if single else POWER + 1
    count = sum(elements(tensor.shape) for tensor in tensors)
    written = moved(*(Tensor((), tensor.dtype) for tensor in tensors))
    cost = Cost(
        one * count + SQUARE_ROOT * len(tensors),
        add_known(moved(*tensors), written),
        exact=not isinstance(order, Unknown),
    )
    return cost, texts(*tensors)


@operators("(tensors*): _foreach_max")
def foreach_max(tensors: Tensors) -> tuple[Cost, str]:
    """The largest element of each tensor of a list.

    FLOPs: one comparison for each element.
    Bytes: each tensor read, one element of its type written for it.
    """
    count = sum(elements(tensor.shape) for tensor in tensors)
    written = moved(*(Tensor((), tensor.dtype) for tensor in tensors))
    return Cost(count, add_known(moved(*tensors), written)), texts(*tensors)


@operators("""
    (left*, mat2=right*): _foreach_mm
    (left*, right*): _native::_foreach_mm_native_0
""")
def foreach_products(left: Tensors, right: Tensors) -> Work:
    """A[m, k] @ B[k, n] for each pair of two lists.

    FLOPs: 2 m n k, summed over the pairs.
    Bytes: each A and B read, each product written.

    In torch ranges, which record flattened lists, only products of square matrices of equal size
    can be separated.
    """
    if len(left) != len(right):
        raise CannotModel(f"lists of different lengths, {len(left)} and {len(right)}")
    total, reason = Cost(0, 0), ""
    for one, other in zip(left, right, strict=True):
        if len(one.shape) != 2 or len(other.shape) != 2 or one.shape[1] != other.shape[0]:
            raise CannotModel(f"cannot multiply {one.shape} and {other.shape}")
        part = forward(Product(one.shape[0], other.shape[1], one.shape[1], one, other))
        total, reason = total + part.cost, reason or part.no_tensor_cores
    part = Part("main", total, texts(*left), kernels=GEMM, no_tensor_cores=reason)
    return Work((part,))
