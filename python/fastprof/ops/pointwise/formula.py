"""FLOPs and bytes of pointwise operators: one formula and a table."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from inspect import Parameter, Signature
from typing import Any, Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.dtypes import canonical_type, is_complex, is_floating, result_type
from fastprof.ops.parameters import Number
from fastprof.ops.pointwise.functions import ACTIVATIONS, ARITHMETIC, FUNCTIONS, GRADIENTS, LOGIC
from fastprof.ops.pointwise.table import Operator, Output
from fastprof.ops.registry import TORCH, op
from fastprof.ops.tensor import broadcast, byte_count, elements, tensor_bytes, tensor_text

Operand = Tensor | Number
Argument = Operand | Unknown

_COMPLEX_OF: Final = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}
_REAL_OF: Final = {whole: part for part, whole in _COMPLEX_OF.items()}


def pointwise(operator: Operator, operands: list[Operand], direction: str) -> Answer:
    """Cost of an elementwise operator with broadcast operands.

    FLOPs are the output's elements times the operator's FLOPs for one, complex or real, by the
    operands' common type. Forward reads each operand once, by its own size, and writes the output;
    a Python scalar is one element of the tensors' type. Backward moves one to three tensors of the
    output's size, as given in the table. If PyProf has a model, bytes are PyProf's. Not counted:
    alpha of add, value of addcmul, and the gradient of a second operand.
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
    whole = is_complex(result_type(operands)) or is_complex(dtype)
    flops = (
        operator.complex_flops if whole and operator.output != Output.COMPLEX else operator.flops
    )
    if direction == "fprop":
        moved = add_known(written, *map(tensor_bytes, read))
    elif operator.gradient is None:
        raise CannotModel("no backward pass")
    else:
        moved = add_known(*[written] * operator.gradient.moved)
        if not whole or operator.gradient.flops != operator.flops:
            flops = None if whole else operator.gradient.flops
    return Cost(None if flops is None else count * flops, moved), params


def _or_scalar(operand: Operand, scalar: Tensor) -> Tensor:
    # torch ranges record a scalar as a tensor without dimensions and type.
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
    return shape, _output_type(operator.output, result_type(operands))


def _output_type(output: Output, dtype: str | None) -> str | None:
    if output is Output.BOOL:
        return "bool"
    if dtype is None or output is Output.PROMOTED:
        return dtype
    if output is Output.MAGNITUDE:
        return _REAL_OF.get(dtype, dtype)
    if output is Output.DOUBLE:
        return "complex128" if is_complex(dtype) else "float64"
    if not is_floating(dtype):
        dtype = "float32"
    return _COMPLEX_OF.get(dtype) if output is Output.COMPLEX else dtype


def _tensor(operand: Operand) -> Tensor:
    if not isinstance(operand, Tensor):
        raise CannotModel(f"expected a tensor, found {operand!r}")
    return operand


def known(*arguments: Argument | None) -> list[Operand]:
    """The operands of a call; one that is not recorded is a scalar."""
    given = [argument for argument in arguments if argument is not None]
    return [Tensor(()) if isinstance(value, Unknown) else value for value in given]


def _register(
    python: tuple[str, ...], aten: tuple[str, ...], operator: Operator, text: str
) -> None:
    # One formula per row; its parameters are the operands.
    keys = tuple([operand for operand in operator.operands if operand != "_"])

    def formula(*, direction: str, **operands: Argument | None) -> Answer:
        return pointwise(operator, known(*map(operands.get, keys)), direction)

    formula.__signature__, annotations = _declared(keys, operator.needed)  # type: ignore[attr-defined]  # PEP 362
    formula.__annotations__ = annotations
    formula.__name__ = formula.__qualname__ = (*python, *aten)[0]
    formula.__doc__ = _document(operator, text)
    arguments = f"({', '.join(operator.operands)}, ...)"
    python = tuple(name + arguments for name in python)
    op(TORCH, *python, aten=[name + arguments for name in aten])(formula)


@cache  # most rows have one or two operands
def _declared(keys: tuple[str, ...], needed: int) -> tuple[Signature, dict[str, Any]]:
    """The signature and the annotations of a formula; needed : operands without a default."""
    parameters = [
        Parameter(
            key,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if i < needed else None,
        )
        for i, key in enumerate(keys)
    ]
    direction = Parameter("direction", Parameter.KEYWORD_ONLY)
    types: dict[str, Any] = {
        key: Argument if i < needed else Argument | None for i, key in enumerate(keys)
    }
    return Signature([*parameters, direction]), types


def _document(operator: Operator, text: str) -> str:
    # The docstring of a row's formula.
    flops = f"{operator.flops} for each element of the output"
    if operator.complex_flops is not None:
        flops += f", {operator.complex_flops} if complex"
    bytes_moved = "each operand read at its own size, the output written"
    if operator.gradient is None:
        flops += "; no backward pass"
    else:
        flops += f"; backward {operator.gradient.flops}"
        tensors = (
            "its zeros written",
            "gradients read and written",
            "gradients and a saved tensor",
        )
        bytes_moved += f"; backward {tensors[operator.gradient.moved - 1]}"
    return f"""{text}, elementwise; output: {operator.output.value}.

    FLOPs: {flops}.
    Bytes: {bytes_moved}.
    """


for _row in (*ARITHMETIC, *LOGIC, *FUNCTIONS, *ACTIVATIONS, *GRADIENTS):
    _register(_row.python, _row.aten, _row.operator, _row.text)
    if _row.python_in_place or _row.aten_in_place:
        _in_place = replace(_row.operator, output=Output.FIRST)
        _register(_row.python_in_place, _row.aten_in_place, _in_place, _row.text)
