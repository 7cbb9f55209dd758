"""Optimizers and foreach operators.

Optimizers of torch.optim have no formula: the operators that their step calls are counted, fused
ones and operators over lists of tensors (`torch._foreach_*`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import POWER, SQUARE_ROOT
from fastprof.ops.cost import Answer, CannotModel, Cost, Part, Work, add_known
from fastprof.ops.matrix.matmul import GEMM, Product, forward
from fastprof.ops.parameters import Number, Tensors
from fastprof.ops.pointwise.formula import pointwise
from fastprof.ops.pointwise.functions import ARITHMETIC, FUNCTIONS
from fastprof.ops.pointwise.table import COMPLEX_DIVISION, NONE, Operator, Output
from fastprof.ops.registry import TORCH, op, operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements, fresh, moved, texts

Flag = bool | Unknown | None
Rate = Tensor | Number | Unknown | None

_DECAY: Final = 2  # parameter * weight_decay, added to the gradient or subtracted
_AVERAGE: Final = 3  # beta * average + (1 - beta) * new
_ADAM: Final = (
    _AVERAGE  # of the gradient
    + 1  # gradient squared
    + _AVERAGE  # of its square
    + SQUARE_ROOT
    + 2  # root / correction + epsilon
    + 3  # parameter - step * average / that
)
_ADAGRAD: Final = 2 + SQUARE_ROOT + 1 + 3  # sum + g * g; root + epsilon; parameter - rate * g / it


def step(
    flops: int, lists: Sequence[Tensors], read: Sequence[Tensors], extra: Tensors, *, exact: bool
) -> Answer:
    """A step over parameters: `flops` for each element of each.

    Raises CannotModel when the shapes do not fit.

    Parameters
    ----------
    flops : int
        FLOPs per element.
    lists : sequence of tuple of Tensor
        Tensors read and written: parameters first, then state of the same shapes.
    read : sequence of tuple of Tensor
        Tensors only read (or written): gradients, of the same shapes.
    extra : tuple of Tensor
        Other tensors that are read.
    exact : bool
        Whether everything that `flops` depends on is known.
    """
    parameters, *state = *lists, *read
    shapes = [tensor.shape for tensor in parameters]
    for tensors in state:
        if [tensor.shape for tensor in tensors] != shapes:
            raise CannotModel("the lists differ in shape")
    count = sum(map(elements, shapes))
    written = [tensor for one in lists for tensor in one]
    only_read = [tensor for one in read for tensor in one]
    touched = add_known(moved(*written), moved(*written), moved(*only_read, *extra))
    return Cost(flops * count, touched, exact), texts(*parameters)


class Scaled(NamedTuple):
    """What fused optimizers do to gradients before their step; tensors besides the lists."""

    rate: Rate = None
    maximize: Flag = False
    grad_scale: Tensor | None = None
    found_inf: Tensor | None = None

    def step(
        self, flops: int, state: list[Tensors], gradients: Tensors, steps: Tensors, exact: bool
    ) -> Answer:
        """A step that negates gradients if asked to, and unscales them in place."""
        flops += self.maximize is True
        exact = exact and not isinstance(self.maximize, Unknown)
        if self.grad_scale is not None:
            return step(flops + 1, [*state, gradients], [], steps, exact=exact)
        return step(flops, state, [gradients], steps, exact=exact)


_DEFAULT: Final[Any] = object()


def _adam(
    scaled: Scaled,
    parameters: Tensors,
    gradients: Tensors,
    averages: Tensors,
    squares: Tensors,
    maxima: Tensors = (),
    steps: Tensors = (),
    weight_decay: Number | Unknown = _DEFAULT,
    *,
    decoupled: bool,
) -> Answer:
    # A decoupled weight decay is used by default.
    by_default = weight_decay is _DEFAULT or isinstance(weight_decay, Unknown)
    decays = decoupled if by_default else bool(weight_decay)
    flops = _ADAM + (_DECAY if decays else 0) + bool(maxima)
    state = [parameters, averages, squares, *([maxima] if maxima else [])]
    return scaled.step(flops, state, gradients, steps, not isinstance(weight_decay, Unknown))


table_row("""
    Adam: m and v averages of g and g^2, p -= rate m / (sqrt(v) / correction + epsilon).
    FLOPs: 32 for each element: 3 for m, 4 for v, 22 for the denominator, 3 for p; 2 more with
        weight decay, 1 each with amsgrad, a negated gradient and a gradient to unscale.
    Bytes: parameters and both averages (with amsgrad also maxima) read and written, gradients read,
        and written if unscaled; the steps read.

    Weight decay and maximize are counted if recorded as used; if not recorded, the cost is an
    estimate. Formula of torch's fused kernel.
    (parameters*, gradients*, averages*, squares*, maxima*?, steps*, lr=rate, _, _,
        weight_decay, _, _, maximize, grad_scale, found_inf): _fused_adam _fused_adam_
""")(_adam, decoupled=False)

table_row("""
    AdamW: Adam after p -= rate weight_decay p.
    FLOPs: 34 for each element, 32 without weight decay: Adam's; 1 more each with amsgrad, a
        negated gradient and a gradient to unscale.
    Bytes: parameters and both averages (with amsgrad also maxima) read and written, gradients read,
        and written if unscaled; the steps read.

    If not recorded, weight decay is assumed to be used, as by default, and the cost is an estimate.
    Formula of torch's fused kernel.
    (parameters*, gradients*, averages*, squares*, maxima*?, steps*, lr=rate, _, _,
        weight_decay, _, _, maximize, grad_scale, found_inf): _fused_adamw _fused_adamw_
""")(_adam, decoupled=True)


@operators("""
    Gradient descent: p -= rate g, with momentum v = momentum v + (1 - dampening) g instead of g.
    FLOPs: 2 for each element; 3 more with momentum (none in its first step), 2 with nesterov, 2
        with weight decay, 1 each for a negated gradient and one to unscale.
    Bytes: parameters and velocities read and written, gradients read, and written if unscaled.

    Options that are not recorded are assumed to be off, and the cost is an estimate. Formula of
    torch's fused kernel.
    (parameters*, gradients*, momentum_buffer_list=velocities*?, weight_decay, _, lr=rate, _,
        nesterov, maximize, is_first_step=first, grad_scale, found_inf): _fused_sgd _fused_sgd_
""")
def fused_sgd(
    scaled: Scaled,
    parameters: Tensors,
    gradients: Tensors,
    velocities: Tensors = (),
    weight_decay: Number | Unknown = 0.0,
    nesterov: Flag = False,
    first: Flag = False,
) -> Answer:
    flops, known = 2, True
    for flag, cost in ((weight_decay, _DECAY), (nesterov, 2)):
        unknown = isinstance(flag, Unknown)
        known, flops = known and not unknown, flops + (0 if unknown or not flag else cost)
    if velocities:
        known = known and not isinstance(first, Unknown)
        flops += 0 if first is True else _AVERAGE
    state = [parameters, *([velocities] if velocities else [])]
    return scaled.step(flops, state, gradients, (), known)


@operators("""
    Adagrad: s += g^2, p -= rate g / (sqrt(s) + epsilon).
    FLOPs: 26 for each element; 2 more with weight decay, 1 each for a negated gradient and one to
        unscale.
    Bytes: parameters and sums read and written, gradients read, and written if unscaled; the steps
        read.

    Options that are not recorded are assumed to be off, and the cost is an estimate.
    (parameters*, gradients*, sums*, steps*, lr=rate, _, weight_decay, _, maximize, grad_scale,
        found_inf): _fused_adagrad _fused_adagrad_
""")
def fused_adagrad(
    scaled: Scaled,
    parameters: Tensors,
    gradients: Tensors,
    sums: Tensors,
    steps: Tensors = (),
    weight_decay: Number | Unknown = 0.0,
) -> Answer:
    known = not isinstance(weight_decay, Unknown)
    flops = _ADAGRAD + (_DECAY if known and weight_decay else 0)
    return scaled.step(flops, [parameters, sums], gradients, steps, known)


table_row("""
    Gradients checked for infinities and unscaled in place (torch.amp's GradScaler).
    FLOPs: 2 for each element: a check and a product.
    Bytes: gradients read and written.
    (gradients*, found_inf, inv_scale): _amp_foreach_non_finite_check_and_unscale
        _amp_foreach_non_finite_check_and_unscale_ _amp_non_finite_check_and_unscale_
""")(
    "gradients*, found_inf~, inv_scale~", lambda gradients: step(2, [gradients], [], (), exact=True)
)


@operators("""
    The loss scale increased or decreased (torch.amp's GradScaler).
    FLOPs: 3: a check, a count and a product.
    Bytes: three numbers read, two written.
    (scale, growth_tracker, found_inf, ...): _amp_update_scale _amp_update_scale_
""")
def amp_update_scale(scale: Tensor, growth_tracker: Tensor, found_inf: Tensor) -> Cost:
    return Cost(3, moved(scale, growth_tracker, found_inf, scale, growth_tracker))


Numbers = tuple[Number, ...]
Operand = Tensors | Numbers | Number | Unknown

_UNARY: Final = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg"
    " reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
_ADDED: Final = "add sub"
_FORMS: Final = (
    (_UNARY, ("first*",)),
    (_ADDED, ("first*, second*", "first*, second")),
    ("clamp_max clamp_min div maximum minimum mul", ("first*, second*", "first*, second")),
    ("pow", ("first*, second*", "first*, second", "second, first*")),
    ("addcdiv addcmul", ("first*, second*, third*, value",)),
    ("lerp", ("first*, second*, third*", "first*, second*, third")),
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


def _register(name: str, operator: Operator, forms: tuple[str, ...]) -> None:
    # The formula of one operator on lists; the pointwise operator of that name does the work.
    guessed = name.rstrip("_") in _ADDED.split()

    def on_list(first: Tensors) -> Answer:
        return _each(operator, first, []), texts(*first)

    def on_lists(
        first: Tensors,
        second: Operand,
        third: Operand | None = None,
        value: Tensor | Operand | None = None,
    ) -> Answer:
        total = _each(operator, first, [second] if third is None else [second, third])
        if guessed and isinstance(second, tuple) and not any(tensor.dtype for tensor in first):
            total = replace(total, exact=False)
        return total, texts(*first)

    formula = on_list if forms == ("first*",) else on_lists
    formula.__doc__ = _ONE_DOC if formula is on_list else _MORE_DOC
    formula.__name__ = formula.__qualname__ = f"foreach_{name}"
    alpha = ", _" if guessed else ""  # in torch ranges, alpha follows the operands
    python = [f"_foreach_{name}({text})" for text in forms]
    op(TORCH, *python, aten=[f"_foreach_{name}({text}{alpha})" for text in forms])(formula)


def _each(operator: Operator, first: Tensors, others: list[Operand]) -> Cost:
    # The operator on each tensor of the first list.
    if len(others) + 1 < operator.needed:
        raise CannotModel(f"expected {operator.needed} operands, found {len(others) + 1}")
    if others and first and not any(tensor.shape or tensor.dtype for tensor in first):
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
    Each tensor of a list copied into that of another, or into a new one.
    FLOPs: 0.
    Bytes: each source read, each copy written, in their own types.
    (tensors*, sources*, _): _foreach_copy _foreach_copy_
    (tensors*, _): _foreach_clone
""")
def foreach_copies(tensors: Tensors, sources: Tensors | None = None) -> Answer:
    return Cost(0, moved(*tensors, *(tensors if sources is None else sources))), texts(*tensors)


@operators("""
    A norm of each tensor of a list (powsum: without the root).
    FLOPs: for each element 2 (order 1, 2 or infinite: a square or absolute value, and a sum or
        comparison) or 21 (a power), and 20 for the root of each tensor.
    Bytes: each tensor read, one element of its type written for it.

    If the order is not recorded, 2 is assumed. The root is counted for every order.
    (tensors*, ord=order, _): _foreach_norm _foreach_powsum
""")
def norms(tensors: Tensors, order: Number | Unknown = 2) -> Answer:
    single = isinstance(order, Unknown) or order in (1, 2, float("inf"), float("-inf"))
    one = 2 if single else POWER + 1
    cost, params = foreach_max(tensors)
    flops = one * (cost.flops or 0) + SQUARE_ROOT * len(tensors)
    return Cost(flops, cost.bytes, exact=not isinstance(order, Unknown)), params


@operators("""
    The largest element of each tensor of a list.
    FLOPs: one comparison for each element.
    Bytes: each tensor read, one element of its type written for it.
    (tensors*): _foreach_max
""")
def foreach_max(tensors: Tensors) -> Answer:
    count = sum(elements(tensor.shape) for tensor in tensors)
    return Cost(count, moved(*tensors, *(fresh(tensor, ()) for tensor in tensors))), texts(*tensors)


@operators("""
    A[m, k] @ B[k, n] for each pair of two lists.
    FLOPs: 2 m n k, summed over the pairs.
    Bytes: each A and B read, each product written.

    In torch ranges, which record flattened lists, only products of square matrices of equal size
    can be separated.
    (left*, mat2=right*): _foreach_mm
    (left*, right*): _native::_foreach_mm_native_0
""")
def foreach_products(left: Tensors, right: Tensors) -> Work:
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
