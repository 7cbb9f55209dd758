"""Collectives against the schemas of the installed torch."""

from typing import Any

import pytest

from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.ops import work
from fastprof.ops.registry import find

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
import torch.distributed as distributed  # noqa: E402
from torch.distributed import distributed_c10d  # noqa: E402

TENSOR = Tensor((6, 2), "float32")
VALUES = {
    "Tensor": TENSOR,
    "List[Tensor]": (TENSOR, TENSOR),
    "List[List[Tensor]]": ((TENSOR, TENSOR),),
    "Optional[Tensor]": None,
    "List[int]": (3, 3),
    "List[str]": ("isend", "irecv"),
    "str": "sum",
    "int": 2,
    "bool": True,
}
SCHEMAS = [
    schema
    for schema in torch._C._jit_get_all_schemas()
    if schema.name.partition("::")[0] in ("c10d", "_c10d_functional", "_c10d_functional_autograd")
]
NO_COLLECTIVES = {"c10d::check_for_nan", "_c10d_functional::_wrap_tensor_autograd"}


def sizes(value: Any) -> list[Tensor]:
    """An argument as recorded in a range: flattened lists of tensors, no lists of lists."""
    if isinstance(value, Tensor):
        return [Tensor(value.shape)]
    if isinstance(value, tuple) and value and all(isinstance(each, Tensor) for each in value):
        return [Tensor(each.shape) for each in value]
    return [Tensor(())]


@pytest.mark.skipif(not distributed.is_available(), reason="a torch without torch.distributed")
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_every_collective_of_torch_has_a_cost_with_types_and_with_sizes_alone(schema: Any) -> None:
    if schema.name in NO_COLLECTIVES:
        return
    space, _, op = schema.name.partition("::")
    values = [VALUES.get(str(argument.type), UNKNOWN) for argument in schema.arguments]
    done = work(Call(space, op, tuple(Arg("", value) for value in values)), "fprop")
    assert done is not None
    assert None not in (done.cost.flops, done.cost.bytes)
    flat = [Arg("", size) for value in values for size in sizes(value)]
    bare = work(Call(space, op, tuple(flat)), "fprop")
    if op == "reduce_scatter_":  # its inputs are a list of lists
        assert bare is None
        return
    assert bare is not None
    assert bare.cost.flops in (None, done.cost.flops)


NAMES = {
    name
    for name in dir(distributed_c10d)
    if name.startswith(("all_", "broadcast", "reduce", "scatter", "gather", "send", "recv"))
    or name in ("isend", "irecv", "barrier", "monitored_barrier")
}


def test_every_function_of_torch_distributed_that_moves_tensors_has_a_formula() -> None:
    moving = {name for name in NAMES if not name.endswith("_object_list")}
    moving -= {name for name in moving if name.endswith("_object")}
    moving -= {"reduce_op"}  # a class
    assert {name for name in moving if find(Call("torch.distributed", name)) is None} == set()
