"""Pointwise operators to FLOPs and bytes: one formula, and a table that says what it needs."""

from __future__ import annotations

from inspect import Parameter, Signature

from fastprof.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.parameters import Number
from fastprof.ops.pointwise_table import OPERATORS, ZEROED, Operator, Output
from fastprof.ops.registry import TORCH, op
from fastprof.ops.tensor import (
    broadcast,
    byte_count,
    canonical_type,
    elements,
    is_floating,
    result_type,
    tensor_bytes,
    tensor_text,
)

__all__ = ["pointwise"]

Operand = Tensor | Number
Argument = Operand | Unknown


def pointwise(operator: Operator, operands: list[Operand], direction: str) -> tuple[Cost, str]:
    """Output element by output element, operands broadcast.

    FLOPs are the output's elements times the operator's FLOPs for one, in both directions.
    Forward reads each operand once, by its own size, and writes the output; a Python scalar is
    one element of the tensors' type. Backward moves one to three tensors of the output's size
    (the table says how many). Where PyProf has a model, bytes are PyProf's. Left out are the
    alpha of add, the value of addcmul and the rounding mode of div.
    """
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    if not tensors:
        raise CannotModel("no tensor among the operands")
    scalar = Tensor((), result_type(tensors))
    read = [_or_scalar(operand, scalar) for operand in operands]

    shape, dtype = _output(operator, operands)
    count = elements(shape)
    written = byte_count(count, dtype)
    params = ";".join(map(tensor_text, read))
    if direction == "fprop":
        moved = add_known(written, *map(tensor_bytes, read))
        cost = Cost(count * operator.flops, moved)
    elif operator.backward is None:
        raise CannotModel("no backward pass")
    else:
        flops = 0 if operator.backward == ZEROED else count * operator.flops
        cost = Cost(flops, add_known(*[written] * operator.backward))
    return cost, params


def _or_scalar(operand: Operand, scalar: Tensor) -> Tensor:
    # Torch ranges write a scalar as a tensor without dimensions and without a type.
    if isinstance(operand, Tensor) and (operand.shape or canonical_type(operand.dtype)):
        return operand
    return scalar


def _output(operator: Operator, operands: list[Operand]) -> tuple[tuple[int, ...], str | None]:
    # Shape and type of the output.
    first = operands[0]
    if operator.output is Output.PER_CHANNEL:
        return _tensor(first).shape, _tensor(first).dtype
    shape = broadcast(*(operand.shape for operand in operands if isinstance(operand, Tensor)))
    if operator.output is Output.FIRST:
        if _tensor(first).shape != shape:
            raise CannotModel(f"an output of {shape} does not fit in place of {first}")
        return shape, _tensor(first).dtype
    if operator.output is Output.BOOL:
        return shape, "bool"
    dtype = result_type(operands)
    if operator.output is Output.FLOAT and dtype is not None and not is_floating(dtype):
        dtype = "float32"
    return shape, dtype


def _tensor(operand: Operand) -> Tensor:
    if not isinstance(operand, Tensor):
        raise CannotModel(f"expected a tensor, found {operand!r}")
    return operand


def _register(name: str, operator: Operator) -> None:
    # One formula an operator, whose parameters are the operands of the table.
    names = [keywords[-1] for keywords in operator.operands]

    def formula(*, direction: str, **operands: Argument | None) -> tuple[Cost, str]:
        given = [each for each in map(operands.get, names) if each is not None]
        known = [Tensor(()) if isinstance(each, Unknown) else each for each in given]
        return pointwise(operator, known, direction)

    parameters = [
        Parameter(
            key,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if i < operator.needed else None,
        )
        for i, key in enumerate(names)
    ]
    direction = Parameter("direction", Parameter.KEYWORD_ONLY)
    formula.__signature__ = Signature([*parameters, direction])  # type: ignore[attr-defined]
    formula.__annotations__ = {
        key: Argument if i < operator.needed else Argument | None for i, key in enumerate(names)
    }
    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = pointwise.__doc__
    text = f"{name}({', '.join(names)}, ...)"
    op(TORCH, text, aten=(text,))(formula)


for _name, _operator in OPERATORS.items():
    _register(_name, _operator)
