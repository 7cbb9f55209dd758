"""Pointwise operators to FLOPs and bytes: one formula, and a table that says what it needs."""

from __future__ import annotations

from fastprof.call import Call, Tensor
from fastprof.ops.arguments import argument, checked
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.pointwise_table import OPERATORS, ZEROED, Operator, Output
from fastprof.ops.registry import model
from fastprof.ops.tensor import (
    SCALAR_TYPES,
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

Operand = Tensor | int | float | complex


@model(*OPERATORS)
def pointwise(call: Call, direction: str) -> Work:
    """Output element by output element, operands broadcast.

    FLOPs are the output's elements times the operator's FLOPs for one, in both directions.
    Forward reads each operand once, by its own size, and writes the output; a Python scalar is
    one element of the tensors' type. Backward moves one to three tensors of the output's size
    (the table says how many). Where PyProf has a model, bytes are PyProf's. Left out are the
    alpha of add, the value of addcmul and the rounding mode of div.
    """
    operator = OPERATORS[call.op]
    operands = _operands(call, operator)
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    if not tensors:
        raise CannotModel(f"{call.op}: no tensor among the operands")
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
        raise CannotModel(f"{call.op} has no backward pass")
    else:
        flops = 0 if operator.backward == ZEROED else count * operator.flops
        cost = Cost(flops, add_known(*[written] * operator.backward))
    return Work((Part("main", cost, params),))


def _operands(call: Call, operator: Operator) -> list[Operand]:
    values = [argument(call, index, *names) for index, names in enumerate(operator.operands)]
    given = [value for value in values if value is not None]
    if any(value is None for value in values[: operator.needed]):
        raise CannotModel(f"{call.op}: an operand is missing")
    return [value if type(value) in SCALAR_TYPES else checked(value) for value in given]


def _or_scalar(operand: Operand, scalar: Tensor) -> Tensor:
    # Torch ranges write a scalar as a tensor without dimensions and without a type.
    if isinstance(operand, Tensor) and (operand.shape or canonical_type(operand.dtype)):
        return operand
    return scalar


def _output(operator: Operator, operands: list[Operand]) -> tuple[tuple[int, ...], str | None]:
    # Shape and type of the output.
    first = operands[0]
    if operator.output is Output.PER_CHANNEL:
        return checked(first).shape, checked(first).dtype
    shape = broadcast(*(operand.shape for operand in operands if isinstance(operand, Tensor)))
    if operator.output is Output.FIRST:
        if checked(first).shape != shape:
            raise CannotModel(f"an output of {shape} does not fit in place of {first}")
        return shape, first.dtype
    if operator.output is Output.BOOL:
        return shape, "bool"
    dtype = result_type(operands)
    if operator.output is Output.FLOAT and dtype is not None and not is_floating(dtype):
        dtype = "float32"
    return shape, dtype
