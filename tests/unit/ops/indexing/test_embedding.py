"""Embedding: bytes of the picked rows."""

import pytest

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops import Cost, work
from unit.ops.ops_calls import aten, fp32, int64, python, sizes
from unit.ops.ops_examples import Rows

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
    assert forward.no_tensor_cores == ""


def test_embedding_of_a_column_of_indices():
    the_call = call("torch.nn.functional", Tensor((35, 1), "int64"), Tensor((35, 200), "float32"))
    assert work(the_call, "fprop").parts[0].cost.bytes == 56280
    assert work(the_call, "bprop").parts[0].cost.bytes == 84000


def test_embedding_without_types_goes_by_the_order_of_its_function():
    untyped = call("aten", Tensor((33278, 200), None), Tensor((35, 20), None))
    (part,) = work(untyped, "fprop").parts
    assert part.cost == Cost(0, None)
    assert part.params == "[35,20]na;[33278,200]na"


MALFORMED = [
    call("torch.nn.functional"),
    call("torch.nn.functional", INDICES),
    call("torch.nn.functional", INDICES, 3),
    call("torch.nn.functional", INDICES, Tensor((200,), "float32")),
]


# 12 indices into a table with rows of 4 numbers: picked rows of 48 numbers; 3 bags.
TABLE, PICKS, OFFSETS = fp32(10, 4), int64(12), int64(3)
GRADIENT = fp32(3, 4)
READ = 8 * 12 + 8 * 3 + 4 * 48
SUM, MEAN, MAX = range(3)
OF_BAG = GRADIENT, PICKS, OFFSETS, PICKS, OFFSETS, OFFSETS, 10, False
EXPANDED = Tensor((12, 4), "float32", (0, 0))  # the gradient of a sum is one number
rows = Rows(globals())
nn = Rows(globals(), "torch.nn.functional")
EXAMPLES = [
    *rows("embedding fp16[10,4] int64[2,3] -1 false false", 0, 48 + 2 * 48),
    *nn("embedding PICKS TABLE", 0, 96 + 2 * 192),
    *nn.back("embedding PICKS TABLE", 0, 3 * 192),
    *rows("embedding [10,4] [12] []*3", 0, None),
    *rows("embedding_dense_backward fp32[12,4] PICKS 10 -1 false", 0, 3 * 192),
    *rows("embedding_backward fp32[12,4] PICKS 10 -1 false false", 0, 3 * 192),
    *rows("embedding_backward fp32[12,4] PICKS 10 -1 false true", 0, None),
    *rows("embedding_dense_backward EXPANDED PICKS 10 -1 false", 0, 4 + 2 * 192),
    # Bags: one addition for each number of each row, one division for each of a mean.
    *rows(
        """embedding_bag TABLE PICKS OFFSETS false SUM false - false -1
        _embedding_bag TABLE PICKS OFFSETS false SUM false - false -1
        _embedding_bag_forward_only TABLE PICKS OFFSETS false SUM false - false -1
        torch.embedding_bag TABLE PICKS OFFSETS false SUM false - false -
        torch._embedding_bag TABLE PICKS OFFSETS false SUM false - false -
        torch._embedding_bag_forward_only TABLE PICKS OFFSETS false SUM false - false -""",
        *(48, READ + 4 * 12),
    ),
    *nn(
        """embedding_bag PICKS TABLE OFFSETS
        embedding_bag PICKS TABLE OFFSETS - 2.0 false 'mean' false - false -
        embedding_bag PICKS TABLE offsets=OFFSETS""",
        *(48 + 12, READ + 4 * 12),
    ),
    *rows("_embedding_bag TABLE PICKS OFFSETS false MEAN false - false -1", 48 + 12, READ + 4 * 12),
    *nn("embedding_bag int64[3,4] TABLE mode='max'", 48, 8 * 12 + 4 * 48 + 4 * 12),
    # Per-sample weights add one multiplication.
    *nn(
        "embedding_bag int64[3,4] TABLE mode='sum' per_sample_weights=fp32[3,4]",
        *(2 * 48, 8 * 12 + 4 * 12 + 4 * 48 + 4 * 12),
    ),
    # The last offset is the end: 2 bags.
    *rows("embedding_bag TABLE PICKS OFFSETS false MEAN false - true", 48 + 8, READ + 4 * 8),
    *nn.back("embedding_bag PICKS TABLE OFFSETS", 48, 8 * 12 + 8 * 3 + 4 * 12 + 2 * 192),
    *rows("_embedding_bag [10,4] [12] [3] []*6", 48, None),
    *rows(
        """_embedding_bag_backward *OF_BAG MEAN false - -1
        _embedding_bag_dense_backward GRADIENT PICKS*2 OFFSETS*2 10 false MEAN - -1""",
        *(48, 4 * 12 + 8 * 12 + 2 * 192),
    ),
    *rows("_embedding_bag_backward *OF_BAG SUM false - -1", 0, 528),
    *rows("_embedding_bag_backward *OF_BAG SUM false fp32[12] -1", 48, 528 + 48),
    *rows("_embedding_bag_backward *OF_BAG SUM true - -1", 0, None),
    *rows(
        "_embedding_bag_per_sample_weights_backward GRADIENT TABLE PICKS OFFSETS PICKS SUM -1",
        *(2 * 48, 4 * 12 + 8 * 12 + 4 * 48 + 4 * 12),
    ),
    # A norm of 2 FLOPs per number and a root, and a multiplication.
    *rows(
        """embedding_renorm|embedding_renorm_|_no_grad_embedding_renorm_ TABLE PICKS 1.0 2.0
        torch.embedding_renorm_|torch._no_grad_embedding_renorm_ TABLE PICKS 1.0 2.0""",
        *(12 * (3 * 4 + 20), 96 + 2 * 192),
    ),
    *nn("one_hot PICKS num_classes=5", 0, 96 + 8 * 60),
    *rows("one_hot PICKS 5", 0, 96 + 8 * 60),
    *rows("one_hot PICKS -1", 0, None),
    *rows("one_hot [12] []", 0, None),
]


def test_bags_of_an_unknown_mode_are_an_estimate():
    unknown = sizes("_embedding_bag", (10, 4), (12,), (3,), (), (), (), (), (), ())
    assert not work(unknown, "fprop").cost.exact


MALFORMED += [
    python("torch.nn.functional", "embedding_bag", PICKS, TABLE),
    python("torch.nn.functional", "embedding_bag", PICKS, TABLE, OFFSETS, mode="median"),
    python("torch.nn.functional", "embedding_bag", int64(2, 3, 4), TABLE),
    python("torch.nn.functional", "embedding_bag", PICKS, fp32(4), OFFSETS),
    aten("embedding_dense_backward", fp32(11, 4), PICKS, 10, -1, False),
]
