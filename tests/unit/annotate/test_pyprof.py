"""Compatibility with PyProf: its markers byte for byte, and the calls of its own test."""

import ast
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fastprof.model.markers import Kind
from support.nvtx_read_back import assert_agrees
from support.real_data import real
from unit.annotate.pyprof_calls import CALLS, I, R

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("nvtx", reason="nvtx is not installed")

from fastprof.annotate.text import argument_text

TESTS = Path(__file__).resolve().parents[2]
EXPORTS = {
    "pyprof/lm_v100_nvprof.sql": "SELECT value FROM StringTable",
    "pyprof/vsr_a100_nsys2024.sqlite": "SELECT DISTINCT text FROM NVTX_EVENTS",
}


def value_of(entry: dict[str, Any]) -> Any:
    if entry["type"] == "tensor":
        return torch.empty(entry["shape"], dtype=getattr(torch, entry["dtype"]), device="meta")
    if entry["type"] == "float" and isinstance(entry["value"], str):
        return float(entry["value"])
    return entry["value"]


@pytest.mark.parametrize("path", EXPORTS)
def test_argument_markers_are_pyprofs_to_the_byte(path):
    with closing(sqlite3.connect(f"{real(path).as_uri()}?mode=ro&immutable=1", uri=True)) as sql:
        texts = [text for (text,) in sql.execute(EXPORTS[path]) if str(text).startswith("{'mod'")]
    compared = 0
    for text in texts:
        marker = ast.literal_eval(text)
        if "args" not in marker:
            continue
        args = [value_of(arg) for arg in marker["args"] if not arg["name"]]
        kwargs = {arg["name"]: value_of(arg) for arg in marker["args"] if arg["name"]}
        assert argument_text(marker["mod"], marker["op"], args, kwargs) == text
        compared += 1
    assert compared > 40


def expected_argument(name: str, value: Any, floats: bool) -> dict[str, Any]:
    if isinstance(value, (R, I)):
        dtype = "int64" if isinstance(value, I) and not floats else "float32"
        return {"name": name, "type": "tensor", "shape": value.shape, "dtype": dtype}
    return {"name": name, "type": type(value).__name__, "value": value}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    from support import nvtx_recorder

    reason = nvtx_recorder.why_not()
    if reason:
        pytest.skip(reason)
    recording = nvtx_recorder.record(
        Path(__file__).with_name("pyprof_calls_made.py"),
        env={"PYTHONPATH": str(TESTS)},
        directory=tmp_path_factory.mktemp("calls"),
        with_torch=True,
    )
    assert recording.open_ranges == [] and recording.stray == 0
    return recording, assert_agrees(recording)


def test_pyprofs_own_calls_are_all_there():
    assert len({op for op, _, _ in CALLS}) >= 88


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda n: f"{n}-{CALLS[n][0]}")
def test_each_call_has_its_ranges_and_true_arguments(made, number):
    op, args, named = CALLS[number]
    recording, _ = made
    around = recording.one(f"call {number}")
    (trace,) = around.children
    (call,) = trace.children
    assert trace.text.startswith("{'traceMarker': [") and "pyprof_calls_made.py:" in trace.text
    floats = op == "binary_cross_entropy"
    entries = [expected_argument("", value, floats) for value in args]
    entries += [expected_argument(name, value, floats) for name, value in named.items()]
    mod = "torch" if op.startswith("torch.") else "torch.nn.functional"
    assert ast.literal_eval(call.text) == {
        "mod": mod,
        "op": op.removeprefix("torch."),
        "args": entries,
    }


def test_fastprof_reads_all_markers_as_what_they_are(made):
    _, read = made
    kinds = {each.meaning.kind for each in read}
    assert kinds == {Kind.USER, Kind.TRACE, Kind.ARGUMENT}
    assert sum(each.meaning.kind == Kind.USER for each in read) == len(CALLS)
