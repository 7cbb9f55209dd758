"""Kernels fused by torch.compile: FLOPs by their names, bytes by their tensors."""

import gzip
import json
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops import work
from fastprof.ops.triton import flops_of_an_element, read_name
from support.hypothesis_profiles import examples
from support.real_data import real
from unit.ops.ops_calls import aten, bf16, fp32, int64, sizes
from unit.ops.ops_examples import Example, cost

X, W = bf16(8, 4096, 2048), bf16(2048)

EXAMPLES = [
    Example(
        aten("triton_red_fused_add_mean_mul_pow_rsqrt_0", X, W, X, 32768, 2048),
        # One each but the root, 20.
        24 * 8 * 4096 * 2048,
        2 * (2 * 8 * 4096 * 2048 + 2048),
        "[8,4096,2048]bf16;[2048]bf16;[8,4096,2048]bf16",
    ),
    Example(aten("triton", fp32(3), fp32(3), 3), None, 4 * 3 * 2),
    Example(aten("triton_per_fused_sum_1", int64(5, 7), fp32(5), 5, 7), 35, 8 * 35 + 4 * 5),
    Example(aten("triton_tem_fused_mm_2", fp32(4, 2), fp32(2, 3), fp32(4, 3)), 48, 4 * 26),
    Example(aten("triton_tem_fused_mm_2", fp32(4, 2), fp32(3, 2), fp32(4, 3)), None, 4 * 26),
    Example(aten("triton_for_fused_add_2", fp32(4), fp32(5), fp32(4)), None, 4 * 13),
    Example(aten("triton_poi_fused_zeros_3", fp32()), 0, 4),
    Example(aten("triton_poi_fused_3", fp32(7), fp32(7), 7), 0, 4 * 14),
    Example(sizes("triton_poi_fused_add_4", (5, 7), (5, 7), ()), 35, None),
    # A slice of 2 x 5 x 6 of 2 x 8 x 6, written next to another.
    Example(
        aten("triton_poi_fused_clone_slice_2", fp32(2, 8, 6), fp32(2, 5, 6), 60), 0, 4 * 2 * 60
    ),
    # Both halves of a product, gate and value, concatenated in memory.
    Example(
        aten("triton_poi_fused_mul_silu_2", bf16(9, 2 * 16), bf16(9, 16), 9 * 16),
        24 * 9 * 16,
        2 * (3 * 9 * 16),
    ),
    # Rows of a table of 1000.
    Example(
        aten("triton_poi_fused_embedding_0", int64(5), fp32(1000, 8), fp32(5, 8), 40),
        0,
        8 * 5 + 4 * (40 + 40),
    ),
    # ynumel and xnumel; the weight has the size of one of them.
    Example(
        aten("triton_poi_fused_add_0", fp32(4, 6), fp32(6), fp32(4, 6), 4, 6), 24, 4 * (24 + 6 + 24)
    ),
    # A dynamic size precedes the extents.
    Example(aten("triton_poi_fused_add_0", fp32(4, 6), fp32(4, 6), 4, 24), 24, 4 * (24 + 24)),
    # x is expanded: stride 0.
    Example(
        aten("triton_poi_fused_mul_0", Tensor((4, 6), "float32", (0, 1)), fp32(4, 6), 24),
        24,
        4 * (6 + 24),
    ),
]


@pytest.mark.parametrize(
    ("name", "kind", "operators"),
    [
        (
            "triton_per_fused__softmax__to_copy_add_native_layer_norm_backward_sum_3",
            "per",
            ("_softmax", "_to_copy", "add", "native_layer_norm_backward", "sum"),
        ),
        ("triton_poi_fused__unsafe_view_mul_silu_2", "poi", ("_unsafe_view", "mul", "silu")),
        ("triton_red_fused_unheard_of_mean_11", "red", ("mean",)),
        ("triton_poi_fused_0", "poi", ()),
        ("triton_poi_fused_", "poi", ()),
        ("triton", "", ()),
        ("other", "", ()),
    ],
)
def test_names_tell_the_operators(name, kind, operators):
    assert read_name(name) == (kind, operators)


def test_what_libraries_do_is_no_work_of_a_fused_kernel():
    names = ["mm", "_scaled_dot_product_flash_attention", "convolution", "addmm", "gelu", "view"]
    assert [flops_of_an_element([name]) for name in names] == [0, 0, 1, 1, 24, 0]


@examples(200)
@given(
    st.lists(st.lists(st.integers(0, 9), max_size=3).map(tuple), min_size=1, max_size=4),
    st.lists(st.integers(-1, 99), max_size=4),
)
def test_a_fused_kernel_moves_no_more_than_its_tensors_hold(shapes, numbers):
    tensors = [fp32(*shape) for shape in shapes]
    done = work(aten("triton_poi_fused_add_0", *tensors, *numbers), "fprop")
    assert done is not None and done.cost.flops >= 0
    assert 0 <= done.cost.bytes <= 4 * sum(prod(shape) for shape in shapes)


def test_what_a_fused_kernel_moves_is_an_estimate():
    assert not cost(EXAMPLES[0].call).exact


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
        done = work(Call("aten", event["name"], tuple(Arg("", value) for value in values)), "fprop")
        assert done is not None
        elements = 0
        for dims, kind in zip(given["Input Dims"], given["Input type"], strict=True):
            count = 1
            for size in dims:
                count *= size
            elements += count if kind != "Scalar" else 0
        assert done.cost.bytes == 2 * elements  # all are bfloat16
