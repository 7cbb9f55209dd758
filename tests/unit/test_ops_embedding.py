"""Embedding: bytes of the picked rows."""

import pytest

from fastprof.call import Arg, Call, Tensor
from fastprof.ops import Cost, work

INDICES = Tensor((35, 20), "int64")
WEIGHT = Tensor((33278, 200), "float32")


def call(mod, *values):
    return Call(mod, "embedding", tuple(Arg("", value) for value in values))


@pytest.mark.parametrize(
    "the_call",
    [
        call("torch.nn.functional", INDICES, WEIGHT, None, None, 2.0, False, False),
        call("torch", WEIGHT, INDICES, -1, False, False),
        call("aten", WEIGHT, INDICES, None, None, None),
        call("torch.nn.functional", WEIGHT, INDICES),
        call("torch", INDICES, WEIGHT),
        Call("torch.nn.functional", "embedding", (Arg("weight", WEIGHT), Arg("input", INDICES))),
    ],
)
def test_embedding_reads_and_writes_the_picked_rows(the_call):
    (forward,) = work(the_call, "fprop").parts
    assert forward.cost == Cost(0, 1125600)
    assert forward.params == "[35,20]int64;[33278,200]fp32"
    (backward,) = work(the_call, "bprop").parts
    assert backward.cost == Cost(0, 1680000)
    assert not work(the_call, "fprop").tensor_cores


def test_embedding_of_a_column_of_indices():
    the_call = call("torch.nn.functional", Tensor((35, 1), "int64"), Tensor((35, 200), "float32"))
    assert work(the_call, "fprop").parts[0].cost.bytes == 56280
    assert work(the_call, "bprop").parts[0].cost.bytes == 84000


def test_embedding_without_types_goes_by_the_order_of_its_function():
    untyped = call("aten", Tensor((33278, 200), None), Tensor((35, 20), None))
    (part,) = work(untyped, "fprop").parts
    assert part.cost == Cost(0, None)
    assert part.params == "[35,20]na;[33278,200]na"


@pytest.mark.parametrize(
    "malformed",
    [
        call("torch.nn.functional"),
        call("torch.nn.functional", INDICES),
        call("torch.nn.functional", INDICES, 3),
        call("torch.nn.functional", INDICES, Tensor((200,), "float32")),
    ],
)
def test_malformed_embedding_has_no_work(malformed):
    assert work(malformed, "fprop") is None
