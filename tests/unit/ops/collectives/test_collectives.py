"""Collectives: reads and writes of one device, for Python, c10d, functional and NCCL names."""

from dataclasses import replace
from fractions import Fraction

import pytest

from fastprof.model.call import UNKNOWN, Arg, Tensor
from fastprof.ops import Cost, work
from fastprof.ops.collectives.messages import COLLECTIVES, algorithm_bytes, bus_bytes, kind_of
from unit.ops.ops_calls import aten, bf16, fp16, fp32, int64, python, sizes, tensor
from unit.ops.ops_examples import Example

MODULES = ("torch.distributed", "torch.distributed.distributed_c10d")
A, B = fp32(6), fp16(4, 2)
ONE = 4 * 6  # bytes of A
TWO = 4 * 6 + 2 * 8  # of A and B

# A ring of 4: pieces of [3] and the whole, [12].
PIECE, WHOLE = fp32(3), fp32(12)
PIECES = (PIECE,) * 4
RING = 4 * 3 + 4 * 12


def in_both(op, *values, **named):
    return [python(module, op, *values, **named) for module in MODULES]


def of(calls, flops, moved, params=None):
    return [Example(call, flops, moved, params) for call in calls]


PYTHON = [
    *of(in_both("all_reduce", A), 6, 2 * ONE, "[6]fp32"),
    *of(in_both("all_reduce", tensor=A, async_op=True), 6, 2 * ONE),
    *of(in_both("all_reduce", A, "RedOpType.SUM", None, False), 6, 2 * ONE),
    *of(in_both("all_reduce_coalesced", A, B), 6 + 8, 2 * TWO, "[6]fp32;[4,2]fp16"),
    *of(in_both("reduce", A, 0), 6, ONE),
    *of(in_both("broadcast", A, 0), 0, ONE),
    *of(in_both("broadcast", tensor=A, src=0), 0, ONE),
    *of([call for op in ("send", "recv", "isend", "irecv") for call in in_both(op, A, 1)], 0, ONE),
    *of(in_both("all_gather", *PIECES, PIECE), 0, 4 * (4 * 3 + 3)),
    *of(in_both("all_gather", PIECES, PIECE, None), 0, 4 * (4 * 3 + 3)),
    *of(in_both("all_gather_coalesced", *PIECES, PIECE), 0, 4 * (4 * 3 + 3)),
    *of(in_both("all_gather_into_tensor", WHOLE, PIECE), 0, RING),
    *of(in_both("all_gather_single", WHOLE, PIECE), 0, RING),
    *of(in_both("_all_gather_base", output_tensor=WHOLE, input_tensor=PIECE), 0, RING),
    *of(in_both("all_to_all", fp32(2), fp32(3), fp32(1), fp32(5)), 0, 4 * (2 + 3 + 1 + 5)),
    *of(in_both("all_to_all", (fp32(2), fp32(3)), (fp32(1), fp32(5))), 0, 4 * (2 + 3 + 1 + 5)),
    *of(in_both("all_to_all_single", WHOLE, fp32(10), None, None), 0, 4 * (12 + 10)),
    *of(in_both("gather", PIECE), 0, 4 * 3),
    *of(in_both("gather", PIECE, None, 1), 0, 4 * 3),
    *of(in_both("gather", PIECE, PIECES, 0), 0, 4 * (3 + 4 * 3)),
    *of(in_both("gather", PIECE, gather_list=PIECES), 0, 4 * (3 + 4 * 3)),
    *of(in_both("scatter", PIECE), 0, 4 * 3),
    *of(in_both("scatter", PIECE, *PIECES), 0, 4 * (3 + 4 * 3)),
    *of(in_both("scatter", PIECE, None, src=1), 0, 4 * 3),
    *of(in_both("reduce_scatter", PIECE, *PIECES), 3 * 3, 4 * (3 + 4 * 3)),
    *of(in_both("reduce_scatter_tensor", PIECE, WHOLE), 3 * 3, RING),
    *of(in_both("reduce_scatter_single", PIECE, WHOLE), 3 * 3, RING),
    *of(in_both("_reduce_scatter_base", output=PIECE, input=WHOLE), 3 * 3, RING),
    *of(in_both("barrier"), 0, 0),
    *of(in_both("barrier", async_op=True), 0, 0),
    *of(in_both("monitored_barrier"), 0, 0),
]

# Non-tensors (process group, reduction, timeout) are text or unknown.
GROUP = "__torch__.torch.classes.c10d.ProcessGroup"
C10D = [
    Example(aten("c10d::allreduce_", (A, B), GROUP, UNKNOWN, None, True, -1), 14, 2 * TWO),
    Example(sizes("c10d::allreduce_", (6,), (4, 2), (), (), (), (), ()), 14, None),
    Example(sizes("c10d::allreduce_", (394241,), (), (), ()), 394241, None),  # an older torch
    Example(sizes("c10d::allreduce_", (), (), (), (), (), ()), 1, None),  # a loss
    Example(aten("c10d::allreduce_coalesced_", (A, B), GROUP, UNKNOWN, True, -1), 14, 2 * TWO),
    Example(aten("c10d::reduce_", (A,), GROUP, UNKNOWN, 0, 0, True, -1), 6, ONE),
    Example(aten("c10d::broadcast_", (A,), GROUP, 0, 0, True, -1), 0, ONE),
    Example(sizes("c10d::broadcast_", (6,), (), (), (), (), ()), 0, None),
    Example(aten("c10d::send", (A,), GROUP, 1, 0), 0, ONE),
    Example(aten("c10d::recv_", (A,), GROUP, 1, 0), 0, ONE),
    Example(aten("c10d::recv_any_source_", (A,), GROUP, 0), 0, ONE),
    Example(aten("c10d::_allgather_base_", WHOLE, PIECE, GROUP, True, -1), 0, RING),
    Example(
        aten("c10d::alltoall_base_", fp32(768), fp32(3392), GROUP, (), ()), 0, 4 * (768 + 3392)
    ),
    Example(sizes("c10d::alltoall_base_", (6144,), (6144,), (), (), (), ()), 0, None),
    Example(
        aten("c10d::allgather_into_tensor_coalesced_", (WHOLE, fp32(8)), (PIECE, fp32(2)), GROUP),
        0,
        4 * (12 + 8 + 3 + 2),
    ),
    Example(
        sizes("c10d::allgather_into_tensor_coalesced_", (12,), (8,), (3,), (2,), (), ()), 0, None
    ),
    Example(aten("c10d::alltoall_", (A, B), (B, A), GROUP, True, -1), 0, 2 * TWO),
    Example(sizes("c10d::alltoall_", (6,), (8,), (9,), (5,), (), (), ()), 0, None),
    Example(aten("c10d::allgather_", (PIECES,), (PIECE,), GROUP, True, -1), 0, 4 * (12 + 3)),
    Example(sizes("c10d::allgather_", (), (3,), (), (), ()), 0, None),
    Example(aten("c10d::allgather_coalesced_", (PIECES,), (PIECE,), GROUP, True), 0, 4 * (12 + 3)),
    Example(aten("c10d::gather_", (PIECES,), (PIECE,), GROUP, 0, True, -1), 0, 4 * (12 + 3)),
    Example(aten("c10d::gather_", (), (PIECE,), GROUP, 0, True, -1), 0, 4 * 3),
    Example(aten("c10d::scatter_", (PIECE,), (PIECES,), GROUP, 0, True, -1), 0, 4 * (12 + 3)),
    Example(sizes("c10d::scatter_", (3,), (), (), (), (), ()), 0, None),
    Example(aten("c10d::_reduce_scatter_base_", PIECE, WHOLE, GROUP, UNKNOWN), 9, RING),
    Example(sizes("c10d::_reduce_scatter_base_", (3,), (12,), (), (), (), ()), 9, None),
    Example(aten("c10d::reduce_scatter_", (PIECE,), (PIECES,), GROUP, UNKNOWN, True, -1), 9, RING),
    Example(
        aten("c10d::reduce_scatter_tensor_coalesced_", (PIECE, fp32(2)), (WHOLE, fp32(8)), GROUP),
        (12 - 3) + (8 - 2),
        4 * (3 + 2 + 12 + 8),
    ),
    Example(
        sizes("c10d::reduce_scatter_tensor_coalesced_", (3,), (2,), (12,), (8,), (), (), (), ()),
        (12 - 3) + (8 - 2),
        None,
    ),
    Example(aten("c10d::barrier", fp32(1), GROUP, (), True, -1), 0, 0),
    Example(aten("c10d::monitored_barrier_", fp32(1), GROUP, (), 3, True), 0, 0),
]


def functional(*ops: str, old: bool = False) -> list[str]:
    spaces = ("_c10d_functional", "c10d_functional") if old else ("_c10d_functional",)
    return [f"{space}::{op}" for space in spaces for op in ops]


# Newer names take (tensor, [reduction,] size of the group, its name), older ones
# (tensor, [reduction,] tag, ranks, size of the group).
GATHER, SCATTER = "all_gather_into_tensor", "reduce_scatter_tensor"
TO_ALL = "all_to_all_single"
AUTOGRAD = "_c10d_functional_autograd"
RANKS = (0, 1, 2, 3)
FUNCTIONAL = [
    Example(aten("_c10d_functional::all_reduce", A, "sum", "0"), 6, 2 * ONE),
    Example(aten("_c10d_functional::all_reduce", A, "sum", "0"), 6, 2 * ONE, direction="bprop"),
    Example(aten("_c10d_functional::all_reduce_", A, "sum", "0"), 6, 2 * ONE),
    Example(aten("_c10d_functional::all_reduce_coalesced", (A, B), "sum", "0"), 14, 2 * TWO),
    Example(aten("_c10d_functional::all_reduce_coalesced_", (A, B), "sum", "0"), 14, 2 * TWO),
    Example(sizes("_c10d_functional::all_reduce_coalesced", (6,), (4, 2), (), ()), 14, None),
    Example(aten("c10d_functional::all_reduce", A, "sum", "", RANKS, 4), 6, 2 * ONE),
    Example(aten("c10d_functional::all_reduce_coalesced", (A,), "sum", "", RANKS, 4), 6, 2 * ONE),
    Example(aten(f"_c10d_functional::{GATHER}", PIECE, 4, "0"), 0, RING, "[3]fp32"),
    Example(aten(f"_c10d_functional::{GATHER}", PIECE, 4, "0"), 9, RING, direction="bprop"),
    Example(aten(f"_c10d_functional::{GATHER}_out", PIECE, 4, "0", WHOLE), 0, RING),
    Example(sizes(f"_c10d_functional::{GATHER}", (3,), (), ()), 0, None),
    Example(sizes(f"_c10d_functional::{GATHER}", (3,), (), ()), None, None, direction="bprop"),
    Example(aten(f"_c10d_functional::{GATHER}_coalesced", (PIECE,), 4, "0"), 0, RING),
    Example(aten(f"{AUTOGRAD}::{GATHER}", PIECE, 4, "0"), 0, RING),
    Example(aten(f"c10d_functional::{GATHER}", PIECE, "", RANKS, 4), 0, RING),
    Example(aten(f"c10d_functional::{GATHER}_coalesced", (PIECE,), "", RANKS, 4), 0, RING),
    Example(aten(f"_c10d_functional::{SCATTER}", WHOLE, "sum", 4, "0"), 9, RING),
    Example(aten(f"_c10d_functional::{SCATTER}", WHOLE, "sum", 4, "0"), 0, RING, direction="bprop"),
    Example(aten(f"_c10d_functional::{SCATTER}_out", WHOLE, "sum", 4, "0", PIECE), 9, RING),
    Example(sizes(f"_c10d_functional::{SCATTER}", (12,), (), (), ()), None, None),
    Example(aten(f"_c10d_functional::{SCATTER}_coalesced", (WHOLE,), "sum", 4, "0"), 9, RING),
    Example(aten(f"{AUTOGRAD}::{SCATTER}", WHOLE, "sum", 4, "0"), 9, RING),
    Example(aten(f"c10d_functional::{SCATTER}", WHOLE, "sum", "", RANKS, 4), 9, RING),
    Example(aten(f"c10d_functional::{SCATTER}_coalesced", (WHOLE,), "sum", "", RANKS, 4), 9, RING),
    *[Example(aten(name, A, 0, "0"), 0, 2 * ONE) for name in functional("broadcast", old=True)],
    Example(aten("_c10d_functional::broadcast_", A, 0, "0"), 0, ONE),
    Example(aten("_c10d_functional::isend", A, 1, 0, "0"), 0, ONE),
    Example(aten("_c10d_functional::irecv", A, 1, 0, "0"), 0, ONE),
    Example(
        aten("_c10d_functional::batch_p2p_ops", ("isend", "irecv"), (1, 1), (0, 0), (A, B), "0"),
        0,
        TWO,
    ),
    *[
        Example(
            aten(f"{space}::{TO_ALL}", bf16(5, 4), (1, 6), (2, 3), "0"),
            0,
            2 * (5 * 4 + (1 + 6) * 4),
            direction=direction,
        )
        for space in ("_c10d_functional", AUTOGRAD)
        for direction in ("fprop", "bprop")
    ],
    Example(
        aten(f"c10d_functional::{TO_ALL}", bf16(5, 4), None, None, "", RANKS, 4), 0, 2 * 2 * 20
    ),
    Example(aten(f"_c10d_functional::{TO_ALL}", bf16(5, 4), UNKNOWN, UNKNOWN, "0"), 0, None),
    *[
        Example(aten(name, WHOLE), 0, 0, direction=direction)
        for name in functional("wait_tensor", old=True)
        for direction in ("fprop", "bprop")
    ],
]

# The ranges of NCCL's process group record inputs only.
NCCL = [
    Example(aten("nccl:all_reduce", A), 6, 2 * ONE),
    Example(sizes("nccl:all_reduce", (394241,)), 394241, None),
    Example(aten("nccl:allreduce_coalesced", A, B), 14, 2 * TWO),
    Example(aten("nccl:reduce", A), 6, ONE),
    Example(aten("nccl:broadcast", A), 0, ONE),
    *[
        Example(aten(f"nccl:{op}", A), 0, None)
        for op in ("all_gather", "_all_gather_base", "all_to_all", "gather", "scatter")
    ],
    Example(aten("nccl:all_gather_into_tensor_coalesced", A, B), 0, None),
    Example(aten("nccl:reduce_scatter", WHOLE), 12, None),
    Example(aten("nccl:_reduce_scatter_base", WHOLE), 12, None),
    Example(aten("nccl:reduce_scatter_tensor_coalesced", A, B), 14, None),
    Example(aten("nccl:all_reduce_barrier", fp32(1)), 0, 0),
]

EXAMPLES = [*PYTHON, *C10D, *FUNCTIONAL, *NCCL]


def test_a_reduction_whose_ranks_are_not_in_the_call_is_an_estimate():
    reduced = work(aten("c10d::allreduce_", (A,), GROUP), "fprop")
    gathered = work(aten("c10d::_allgather_base_", WHOLE, PIECE, GROUP), "fprop")
    assert reduced is not None and gathered is not None
    assert (reduced.cost.exact, gathered.cost.exact) == (False, True)


def test_tensors_count_by_their_own_types():
    done = work(aten("c10d::alltoall_base_", tensor("int32", 10), int64(10), GROUP), "fprop")
    assert done is not None
    assert done.cost.bytes == 4 * 10 + 8 * 10


MALFORMED = [
    python("torch.distributed", "all_reduce"),
    python("torch.distributed", "all_reduce", None),
    python("torch.distributed", "all_gather"),
    python("torch.distributed", "reduce_scatter_tensor", WHOLE, PIECE),
    python("torch.distributed", "reduce_scatter", PIECE),
    aten("c10d::allreduce_", UNKNOWN, GROUP, UNKNOWN, None),
    aten("c10d::reduce_scatter_", (PIECE,), UNKNOWN, GROUP),
    sizes("c10d::reduce_scatter_", (3,), (), (), (), (), ()),
    sizes("c10d::reduce_scatter_tensor_coalesced_", (3,), (12,), (8,), (), (), (), ()),
    aten(f"_c10d_functional::{GATHER}", PIECE, 0, "0"),
    aten(f"_c10d_functional::{SCATTER}", WHOLE, "sum", 5, "0"),
    aten(f"_c10d_functional::{TO_ALL}", bf16(5, 4), (-1, 6), (2, 3), "0"),
    aten("nccl:all_reduce", Tensor((-1,), "float32")),
]


def test_with_the_number_of_ranks_the_share_of_an_all_reduce_is_exact():
    call = replace(aten("c10d::allreduce_", (A,)), args=(Arg("", (A,)), Arg("ranks", 3)))
    assert work(call, "fprop").cost == Cost(4, 2 * ONE)
    alone = replace(call, args=(Arg("", (A,)), Arg("ranks", 1)))
    assert work(alone, "fprop").cost == Cost(0, 2 * ONE)
    unknown = replace(call, args=(Arg("", (A,)), Arg("ranks", UNKNOWN)))
    assert work(unknown, "fprop").cost == Cost(6, 2 * ONE, exact=False)


@pytest.mark.parametrize(
    "name, kind",
    [
        ("c10d::allreduce_", "all_reduce"),
        ("nccl:_all_gather_base", "all_gather"),
        ("_allgather_base", "all_gather"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("c10d::alltoall_base_", "all_to_all"),
        ("_broadcast_oop", "broadcast"),
        ("c10d::gather_", "gather"),
        ("nccl:scatter", "scatter"),
        ("reduce", "reduce"),
        ("c10d::recv_any_source_", "send_recv"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "send_recv"),
        ("ncclDevKernel_Generic", None),
        ("aten::mm", None),
    ],
)
def test_names_tell_kinds_of_collectives(name, kind):
    assert kind_of(name) == kind


# 4 ranks and an array of 48 bytes: doc/PERFORMANCE.md of nccl-tests.
@pytest.mark.parametrize(
    "kind, given, got, algorithm, bus",
    [
        ("all_reduce", 48, 48, 48, 72),
        ("all_gather", 12, 48, 48, 36),
        ("reduce_scatter", 48, 12, 48, 36),
        ("all_to_all", 48, 48, 48, 36),
        ("gather", 12, 48, 48, 36),
        ("scatter", 48, 12, 48, 36),
        ("broadcast", 48, 0, 48, 48),
        ("reduce", 48, 48, 48, 48),
        ("send_recv", 0, 48, 48, 48),
    ],
)
def test_algorithm_and_bus_bytes_are_those_of_nccls_tests(kind, given, got, algorithm, bus):
    assert algorithm_bytes(kind, given, got) == algorithm
    assert bus_bytes(kind, algorithm, 4) == bus


def test_nothing_crosses_the_bus_of_one_rank_but_messages():
    assert {bus_bytes(kind, 48, 1) for kind in COLLECTIVES} == {0, 48}
    assert bus_bytes("all_reduce", 48, 1) == 0


def test_bytes_on_the_bus_need_not_be_whole():
    assert bus_bytes("all_gather", 10, 3) == Fraction(20, 3)


@pytest.mark.parametrize("kind, ranks", [("all_reduce", 0), ("barrier", 2)])
def test_a_kind_or_a_group_that_is_none_is_refused(kind, ranks):
    with pytest.raises(ValueError, match="expected one of"):
        bus_bytes(kind, 48, ranks)
    with pytest.raises(ValueError, match="expected one of"):
        algorithm_bytes("barrier", 1, 1)
