"""Costs of real traces: products in backward, convolutions of 2021, dict lines against captures."""

from collections import Counter
from math import prod

import pytest

from oracle.capture import Range
from oracle.work import innermost
from real import open_traces
from real.open_traces import profile
from real.oracle_comparison import BIAS, pairs
from support import dict_lines
from support.real_data import traces

PRODUCTS = {
    *("linear", "mm", "addmm", "bmm", "baddbmm", "matmul", "einsum", "__matmul__"),
    *("scaled_dot_product_attention", "_scaled_dot_product_flash_attention"),
    *("conv1d", "conv2d", "conv3d", "convolution"),
}

# Products whose cost is unknown from dict lines: (direction, op) -> reason.
NO_STRIDE = "lines hold no strides, and the backward pass that would tell the output is not there"
UNTOLD = {
    "owlv2_h100": {("fprop", "conv2d"): NO_STRIDE},
    "transformer_a100_2024": {("fprop", "conv1d"): NO_STRIDE},
}
TRACES = [
    *(f"kineto/dlrm_rank{rank}.json.gz" for rank in range(4)),
    "kineto/dtensor_tp2_rank0.json.gz",
    "kineto/owlv2_h100.json.gz",
    "kineto/recommender_2023.json.gz",
    "kineto/resnet18_mi300_full.json.gz",
    "kineto/resnet50_2021_stack_memory.json.gz",
    "kineto/train_v100_2022.json.gz",
    "kineto/train_v100_2022_control.json.gz",
    "kineto/transformer_a100_2024.json.gz",
    "kineto/triton_compile.json.gz",
    "pyprof/lm_v100_nvprof.sql",
    "pyprof/vsr_a100_nsys2024.sqlite",
]


def flops(opened):
    """FLOPs of products by (direction, op)."""
    sums = Counter()
    columns = [opened.column(key) for key in ("dir", "op", "flops")]
    for row in range(len(opened)):
        direction, op, count = (column.at(row) for column in columns)
        if op in PRODUCTS:
            sums[direction, op] += count or 0
    return sums


@pytest.mark.parametrize("path", TRACES)
def test_dict_lines_have_the_products_of_the_capture_each_once(path):
    capture = profile(path)
    result, wanted = flops(dict_lines.reopened(capture)), flops(capture)
    untold = UNTOLD.get(path.split("/")[1].removesuffix(".json.gz"), {})
    for key in untold:
        assert result[key] < wanted[key], f"{key} is told now"
        del result[key], wanted[key]
    assert {key: n for key, n in result.items() if n} == {key: n for key, n in wanted.items() if n}


@pytest.mark.parametrize(
    "path",
    ["kineto/resnet50_2021_stack_memory.json.gz", "kineto/resnet50_2021_4workers.json.gz"],
)
def test_convolutions_of_2021_have_the_output_that_their_backward_pass_says(path):
    opened = profile(path)
    sums = flops(opened)
    # All but the first have two gradients of as many FLOPs; six steps.
    first = 2 * 32 * 64 * 112 * 112 * 3 * 7 * 7
    assert sums["bprop", "conv2d"] == 2 * sums["fprop", "conv2d"] - 6 * first
    assert not any("convolution" in (op or "") for op in opened.column("op").values)
    coverage = opened.coverage
    assert coverage.known["cost"] > 0.995 * coverage.total


@pytest.mark.parametrize(
    ("path", "op", "expected"),
    [
        # The innermost product of these calls' backward rows, by the sizes in the file.
        ("kineto/recommender_2023.json.gz", "linear", "M=17902,N=17,K=2048,fp32,"),
        ("kineto/recommender_2023.json.gz", "matmul", "B=2048,M=20,N=606,K=160,fp32,"),
        ("kineto/train_v100_2022_control.json.gz", "bmm", "B=1024,M=30,N=647,K=96,fp32,"),
    ],
)
def test_products_in_backward_say_their_own_sizes(path, op, expected):
    rows = profile(path).rows()
    result = {row["params"] for row in rows if row["dir"] == "bprop" and row["op"] == op}
    assert expected in result


def test_autocast_shows_half_precision_for_every_product():
    for row in open_traces.profile("kineto/transformer_a100_2024.json.gz").rows():
        if row["op"] in PRODUCTS:
            assert row["params"].endswith(",fp16,"), row["idx"]


# Position of the left factor among the arguments.
INNERMOST = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}


@pytest.mark.parametrize("path", traces("kineto/*.json.gz"))
def test_products_that_ran_have_the_flops_of_their_own_sizes(path):
    """2 M N K of each innermost product that launched kernels, from the sizes in the file."""
    told: Counter[Range] = Counter()
    for kernel, row in pairs(open_traces.capture(path).kernels, open_traces.rows(path)):
        product = innermost(kernel.range)
        if product is not None and product.name in INNERMOST and product.dims:
            told[product] += row.flops if row.op != BIAS else 0
    # Autocast casts inside of a product that then calls itself.
    around = {outer for product in told for outer in product.chain()[1:]}
    expected = 0
    for product in told.keys() - around:
        at = INNERMOST[product.name]
        left, right = product.dims[at : at + 2]
        expected += 2 * prod(left) * right[-1]
    assert sum(told.values()) == expected


def test_a_dtensor_has_the_sizes_of_its_local_part():
    rows = profile("kineto/dtensor_tp2_rank0.json.gz").rows()
    params = Counter((row["op"], row["params"]) for row in rows)
    # The outer operators record M=2816 and a sequence of 16.
    assert params["linear", "M=1408,N=32768,K=1024,fp32,"] == 8
    assert params["pow", "[2048,8,1024]fp32;[]fp32"] == 9
    assert not any(f"{key}=2816," in text for _, text in params for key in "MNK")


def test_products_of_experts_are_products():
    """Kernels of TensorRT-LLM with an activation (swiGlu) in their names, too."""
    path = "kineto/moe_b200_eager.json.gz"
    kernels = [e for e in open_traces.events(path) if e.get("cat") == "kernel"]
    ran = sum(int(e["dur"] * 1000) for e in kernels if e["name"].startswith("bmm_"))
    assert ran > 0.4 * sum(int(e["dur"] * 1000) for e in kernels)
    columns = (profile(path).kernels[name].tolist() for name in ("name", "class", "tc", "sil"))
    rows = [row for row in zip(*columns, strict=True) if row[0].startswith("bmm_")]
    assert {row[1:3] for row in rows} == {("gemm", "1")}
    assert sum(row[3] for row in rows) == pytest.approx(ran, rel=1e-4)
