"""The message of a collective from torch's record, an operator's arguments and a kernel's name."""

from typing import Any

import pytest

from fastprof.model.call import Arg, Call, Tensor
from fastprof.model.markers.collectives import Collective, recorded
from fastprof.ops.collectives.messages import (
    Message,
    call_message,
    kernel_message,
    recorded_message,
)


def record(name: str, given: int, got: int, dtype: str = "Float", ranks: int = 4) -> Collective:
    result = recorded(
        f'"Collective name":"{name}","dtype":"{dtype}","In msg nelems":{given},'
        f'"Out msg nelems":{got},"Group size":{ranks},"Process Group Name":"7",'
        '"Process Group Description":"mesh_tp"'
    )
    assert result is not None
    return result


# Of 4 ranks, elements of 4 bytes: name, elements, kind, size, bus bytes.
RECORDS: list[tuple[str, int, int, str, int | None, float | None]] = [
    ("allreduce", 12, 12, "all_reduce", 48, 72),
    ("_allgather_base", 3, 12, "all_gather", 48, 36),
    ("all_gather_into_tensor_coalesced", 3, 12, "all_gather", 48, 36),
    ("_reduce_scatter_base", 12, 3, "reduce_scatter", 48, 36),
    ("all_to_all", 12, 12, "all_to_all", 48, 36),
    ("all_to_allv", 10, 12, "all_to_all", 48, 36),
    ("broadcast", 12, 12, "broadcast", 48, 48),
    ("_reduce_oop", 12, 12, "reduce", 48, 48),
    ("send", 12, 0, "send_recv", 48, 48),
    ("recv", 0, 12, "send_recv", 48, 48),
    ("gather", 3, 12, "gather", 48, 36),
    ("scatter", 12, 3, "scatter", 48, 36),
    ("barrier", 0, 0, "barrier", None, None),
]


@pytest.mark.parametrize("name, given, got, kind, size, bus", RECORDS)
def test_sizes_of_records_are_those_of_nccls_tests(name, given, got, kind, size, bus):
    result = recorded_message(record(name, given, got))
    assert (result.kind, result.size, result.bus) == (kind, size, bus)
    assert (result.ranks, result.group, result.dtype) == (4, "7 mesh_tp", "fp32")


def test_a_record_without_sizes_or_type_has_no_size():
    assert recorded_message(record("allreduce", 12, 12, "Undefined")).size is None
    result = recorded('"Collective name":"allreduce","dtype":"Float"')
    assert result == Collective("allreduce", None, None, "float", None, None)
    assert recorded_message(result) == Message("all_reduce", dtype="fp32")


@pytest.mark.parametrize(
    "pairs, group",
    [
        ('"Process Group Name":"0","Process Group Description":"undefined"', "0"),
        ('"Process Group Name":"0","Process Group Description":""', "0"),
        ('"Process Group Name":"0"', "0"),
        ('"Process Group Description":"default_pg"', None),
        ('"Process Group Name":5', None),
    ],
)
def test_a_group_has_its_name_and_its_description(pairs, group):
    result = recorded(f'"Collective name":"allreduce",{pairs}')
    assert result.group == group


@pytest.mark.parametrize("pairs", ["", "[", '"Collective name":3', '"dtype":"Float"'])
def test_other_pairs_are_no_record(pairs):
    assert recorded(pairs) is None


X = Tensor((3,), "float32")
LARGE = Tensor((12,), "float32")


def call(name: str, *values: Any, **named: Any) -> Call:
    mod, _, op = name.rpartition("::")
    args = [Arg("", value) for value in values]
    return Call(mod or "aten", op, (*args, *(Arg(key, value) for key, value in named.items())))


# Bytes in and out, ranks.
CALLS: list[tuple[Call, str, int | None, int | None, int | None]] = [
    (call("c10d::allreduce_", (X, LARGE)), "all_reduce", 60, 60, None),
    (call("c10d::allreduce_", (X,), ranks=4), "all_reduce", 12, 12, 4),
    (call("c10d::_allgather_base_", LARGE, X, None, True, -1), "all_gather", 12, 48, 4),
    (call("c10d::allgather_", ((X, X),), (X,), None, -1, True), "all_gather", 12, 24, 2),
    (call("c10d::_reduce_scatter_base_", X, LARGE, None, None, True, -1),
     "reduce_scatter", 48, 12, 4),
    (call("c10d::reduce_scatter_", (X,), ((X, X),), None, None, True, -1),
     "reduce_scatter", 24, 12, 2),
    (call("c10d::scatter_", (X,), ((X, X),), None, 0, True, -1), "scatter", 24, 12, None),
    (call("c10d::gather_", ((X, X),), (X,), None, 0, -1, True), "gather", 12, 24, None),
    (call("c10d::alltoall_base_", LARGE, X, None, (1,), (1,), True, -1),
     "all_to_all", 12, 48, None),
    (call("c10d::broadcast_", (LARGE,), None, 0, 0, True, -1), "broadcast", 48, 48, None),
    (call("c10d::send", (X,), None, 1, 0), "send_recv", 12, 12, None),
    (call("c10d::barrier", X, None, None, -1), "barrier", None, None, None),
    (call("nccl:all_reduce", X), "all_reduce", 12, 12, None),
    (call("nccl:all_to_all", X), "all_to_all", 12, None, None),
    (call("nccl:_all_gather_base", X), "all_gather", 12, None, None),
    (call("nccl:_reduce_scatter_base", LARGE), "reduce_scatter", 48, None, None),
    (call("_c10d_functional::all_gather_into_tensor", X, 4, "0"), "all_gather", 12, 48, 4),
    (call("_c10d_functional::reduce_scatter_tensor", LARGE, "sum", 4, "0"),
     "reduce_scatter", 48, None, 4),
    (call("vllm::all_reduce", X, "tp:0"), "all_reduce", 12, 12, None),
    (call("vllm::all_gather", X, 0, 8, "tp:0"), "all_gather", 12, 96, 8),
]  # fmt: skip


@pytest.mark.parametrize("one, kind, given, got, ranks", CALLS, ids=[str(i) for i in range(20)])
def test_sizes_of_calls(one, kind, given, got, ranks):
    dtype = None if kind == "barrier" else "fp32"
    assert call_message(one) == Message(kind, given, got, dtype, ranks)


@pytest.mark.parametrize("name", ["aten::mm", "c10d::something", "_c10d_functional::wait_tensor"])
def test_other_calls_have_no_message(name):
    assert call_message(call(name, X)) is None
    assert call_message(None) is None


@pytest.mark.parametrize(
    "kernel, size",
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 12),
        ("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevComm*)", 6),
        ("ncclDevKernel_AllReduce_MinMax_u64_RING_LL", 24),
        ("ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)", 6),
        ("ncclKernel_AllReduce_TREE_LL_Sum___nv_bfloat16(ncclWorkElem)", 6),
        ("ncclAllReduceRingLLKernel_sum_f64(ncclColl)", 24),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", None),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", None),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*)", None),
    ],
)
def test_types_that_emit_nvtx_does_not_record_are_those_of_the_kernel(kernel, size):
    """Kernels that only move data are named int8_t for all types."""
    untyped = call("c10d::allreduce_", (Tensor((3,)),))
    result = call_message(untyped, kernel)
    assert result.size == size


def test_a_kernel_names_its_collective():
    assert kernel_message("ncclDevKernel_AllGather_RING_LL(x)") == Message("all_gather")
    assert kernel_message("vllm::cross_device_reduce_1stage<float, 2>") == Message("all_reduce")
    assert kernel_message("ncclDevKernel_Generic(x)") == Message(None)
    known = Message("all_to_all", 8, 8)
    assert kernel_message("ncclDevKernel_SendRecv(x)", known) == known
