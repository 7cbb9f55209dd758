"""What the tables of operators of serving stacks have in common."""

from fastprof.model.call import Call, Tensor
from fastprof.ops import why_unknown
from unit.ops.ops_calls import tensor
from unit.ops.ops_examples import Example, cost


def fp8(*shape: int) -> Tensor:
    return tensor("float8_e4m3fn", *shape)


def uint8(*shape: int) -> Tensor:
    return tensor("uint8", *shape)


def int8(*shape: int) -> Tensor:
    return tensor("int8", *shape)


def int32(*shape: int) -> Tensor:
    return tensor("int32", *shape)


def exact(example: Example) -> bool:
    """Whether the cost is no estimate."""
    return cost(example.call, example.direction).exact


def reason(call: Call) -> str | None:
    return why_unknown(call, "fprop")
