"""Costs of real traces: products in backward, convolutions of 2021, dict lines against captures."""

import io
from collections import Counter

import pytest

import open_traces
from fastprof.profile.load import read_dict_lines
from fastprof.profile.profile import dict_line_columns
from fastprof.writers import write_rows
from open_traces import profile

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
    file = io.BytesIO()
    write_rows(dict_line_columns(capture), "dict", file)
    file.seek(0)
    found, wanted = flops(read_dict_lines(file, path)), flops(capture)
    untold = UNTOLD.get(path.split("/")[1].removesuffix(".json.gz"), {})
    for key in untold:
        assert found[key] < wanted[key], f"{key} is told now"
        del found[key], wanted[key]
    assert {key: n for key, n in found.items() if n} == {key: n for key, n in wanted.items() if n}


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
    found = {row["params"] for row in rows if row["dir"] == "bprop" and row["op"] == op}
    assert expected in found


def test_autocast_shows_half_precision_for_every_product():
    for row in open_traces.profile("kineto/transformer_a100_2024.json.gz").rows():
        if row["op"] in PRODUCTS:
            assert row["params"].endswith(",fp16,"), row["idx"]
