"""The models against PyProf's output for a real training run."""

import ast
import csv
import os
from pathlib import Path

import pytest

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops import tensors_text, work

POINTWISE = {"__mul__", "__add__", "relu", "mul_"}


def _call(marker):
    fields = ast.literal_eval(marker)
    arguments = []
    for arg in fields["args"]:
        tensor = arg["type"] == "tensor"
        value = Tensor(arg["shape"], arg["dtype"]) if tensor else arg.get("value")
        arguments.append(Arg(arg["name"], value))
    return Call(fields["mod"], fields["op"], tuple(arguments))


@pytest.fixture(scope="module")
def rows_and_calls():
    root = os.environ.get("FASTPROF_DATA")
    data = (Path(root) if root else Path(__file__).parents[4] / "shared" / "data") / "pyprof"
    rows = data / "golden" / "lm_v100_nvprof.pyprof311.csv"
    lines = data / "lm_v100_nvprof.author.dict"
    if not rows.exists() or not lines.exists():
        pytest.skip("no golden rows of lm_v100_nvprof in the real data")
    markers = [ast.literal_eval(line)["marker"] for line in lines.read_text().splitlines()]
    with rows.open(newline="") as file:
        paired = list(zip(csv.DictReader(file), markers, strict=False))
    return [(row, _call(marker[0])) for row, marker in paired if marker]


def test_forward_rows_of_pointwise_and_embedding_are_pyprofs(rows_and_calls):
    compared = 0
    for row, call in rows_and_calls:
        if row["Op"] in POINTWISE | {"embedding"} and row["Direction"] == "fprop":
            (part,) = work(call, "fprop").parts
            assert [part.params, str(part.cost.flops), str(part.cost.bytes)] == [
                row["Params"],
                row["FLOPs"],
                row["Bytes"],
            ], row["Idx"]
            compared += 1
    assert compared == 23


def test_forward_rows_of_linear_are_pyprofs_but_for_the_bytes_it_gets_wrong(rows_and_calls):
    compared = 0
    for row, call in rows_and_calls:
        if row["Op"] in ("linear", "bias") and row["Direction"] == "fprop":
            role = {"linear": "main", "bias": "bias"}[row["Op"]]
            (part,) = (part for part in work(call, "fprop").parts if part.role == role)
            assert part.params == row["Params"].replace("(35,20)", "700")
            assert str(part.cost.flops) == row["FLOPs"]
            assert (str(part.cost.bytes) == row["Bytes"]) == (role == "bias")
            compared += 1
    assert compared == 6


def test_calls_without_a_model_print_their_tensors_as_pyprof_did(rows_and_calls):
    unmodelled = [(row, call) for row, call in rows_and_calls if row["Params"].startswith("T=[")]
    assert len(unmodelled) > 20
    for row, call in unmodelled:
        assert tensors_text(call) == row["Params"]
