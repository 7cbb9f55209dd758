"""Kernels that torch.compile has fused: bytes of their tensors, FLOPs unknown."""

from __future__ import annotations

import gzip
import json

import pytest

from fastprof.call import Arg, Call, Tensor
from fastprof.ops import work
from ops_examples import Example, aten, bf16, check, fp32, int64, sizes
from real_data import real

X, W = bf16(8, 4096, 2048), bf16(2048)

EXAMPLES = [
    Example(
        aten("triton_red_fused_add_mean_mul_pow_rsqrt_0", X, W, X, 32768, 2048),
        None,
        2 * (2 * 8 * 4096 * 2048 + 2048),
        "[8,4096,2048]bf16;[2048]bf16;[8,4096,2048]bf16",
    ),
    Example(aten("triton", fp32(3), fp32(3), 3), None, 4 * 3 * 2),
    Example(aten("triton_per_fused_sum_1", int64(5, 7), fp32(5), 5, 7), None, 8 * 35 + 4 * 5),
    Example(aten("triton_tem_fused_mm_2", fp32(4, 2), fp32(2, 3), fp32(4, 3)), None, 4 * 26),
    Example(aten("triton_poi_fused_zeros_3", fp32()), None, 4),
    Example(sizes("triton_poi_fused_add_4", (5, 7), (5, 7), ()), None, None),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.call.op)
def test_a_fused_kernel_moves_each_of_its_tensors_once(example):
    check(example)


def test_what_a_fused_kernel_moves_is_an_estimate():
    done = work(EXAMPLES[0].call, "fprop")
    assert done is not None
    assert not done.cost.exact


@pytest.mark.parametrize("values", [(), (3, 4), (None,), (3, fp32(3))])
def test_a_kernel_without_tensors_in_front_has_no_cost(values):
    assert work(aten("triton_poi_fused_add_4", *values), "fprop") is None


def test_every_fused_kernel_of_a_real_trace_has_its_bytes():
    path = real("kineto/triton_compile.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    fused = [
        event
        for event in events
        if event.get("cat") == "cpu_op" and event["name"].startswith("triton_")
    ]
    assert len(fused) == 4
    for event in fused:
        given = event["args"]
        values = [
            Tensor(tuple(dims), kind) if kind != "Scalar" else int(text)
            for dims, kind, text in zip(
                given["Input Dims"], given["Input type"], given["Concrete Inputs"], strict=True
            )
        ]
        done = work(Call("aten", event["name"], tuple(Arg("", each) for each in values)), "fprop")
        assert done is not None
        elements = 0
        for dims, kind in zip(given["Input Dims"], given["Input type"], strict=True):
            count = 1
            for size in dims:
                count *= size
            elements += count if kind != "Scalar" else 0
        assert done.cost.bytes == 2 * elements  # all are bfloat16
