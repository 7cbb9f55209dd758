"""The structured log that torch 2.13 wrote, and damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastprof.readers.inductor import structured_log
from support.compiled_programs import FOLDER, MODEL

LOG = FOLDER / "dedicated_log_torch_trace_first.log"


def test_graphs_have_their_key_kernels_and_nodes() -> None:
    forward, backward, again, _ = structured_log.read(LOG).graphs
    assert forward.key == "fntbqlovmc2gco67vno3ixqjuz6w3vtc5upfhgmnkcbylqgkt42r"
    assert [kernel.name for kernel in forward.kernels] == [
        "cpp_fused_native_layer_norm_0", "aten::addmm",
        "cpp_fused_add_gelu_mul_native_layer_norm_1", "aten::addmm", "cpp_fused_add_gelu_mul_sum_2",
    ]  # fmt: skip
    node = forward.nodes["mul_4"]
    assert node.op == "gelu" and node.call.op == "mul"
    assert node.frames == (f"{MODEL}:17", f"{MODEL}:10")
    assert again.place.endswith("0/1") and backward.place.endswith("0/0")


def test_symbols_have_the_value_of_the_compilation() -> None:
    again = structured_log.read(LOG).graphs[2]
    tensor = again.nodes["addmm"].call.result
    assert tensor is not None and tensor.shape == (33, 64)


def test_recompilations_have_the_guard_that_failed() -> None:
    (again,) = structured_log.read(LOG).recompilations
    assert again.compile_id == "0/1"
    assert again.reasons == ("0/0: tensor 'x' size mismatch at index 0. expected 32, actual 33",)


def test_graph_breaks_have_reason_and_line(tmp_path: Path) -> None:
    header = (
        'V1128 07:39:43.496000 24548 torch/_dynamo/symbolic_convert.py:5098] {"artifact": '
        '{"name": "dynamo_graph_break_reason", "encoding": "string"}, "frame_id": 3, '
        '"frame_compile_id": 0, "attempt": 0, "has_payload": "00"}\n'
    )
    text = (
        "\tGraph break in user code at /home/me/model.py:9\n"
        "\tGraph Break Reason: Call to `torch._dynamo.graph_break()`\n\tUser code traceback:\n"
        '\t  File "/home/me/train.py", line 4, in main\n\t    f(x)\n'
        '\t  File "/home/me/model.py", line 9, in forward\n\t    stop()\n'
        '\tTraceback (most recent call last):\n\t  File "torch/x.py", line 1, in run\n'
    )
    path = tmp_path / "dedicated_log_torch_trace_rank_0_x.log"
    path.write_text(header + text)
    (result,) = structured_log.read(path).breaks
    assert result.compile_id == "3/0" and result.line == "/home/me/model.py:9"
    assert result.reason == "Call to `torch._dynamo.graph_break()`"


@pytest.mark.parametrize("cut", [100, 20_000, 60_001])
def test_a_log_that_ends_early_has_the_graphs_before(tmp_path: Path, cut: int) -> None:
    path = tmp_path / LOG.name
    path.write_bytes(LOG.read_bytes()[:cut])
    whole = structured_log.read(LOG).graphs
    graphs = structured_log.read(path).graphs
    assert len(graphs) <= len(whole) and (cut < 60_000 or len(graphs) >= 2)


def test_other_lines_are_omitted(tmp_path: Path) -> None:
    path = tmp_path / LOG.name
    path.write_bytes(b"\tlost\nno record\nV1128 1 2 f:3] {\nV1128 1 2 f:3] []\n\xff\xfe\n\t\n")
    assert structured_log.read(path).graphs == ()


def test_names_of_logs() -> None:
    assert structured_log.is_structured_log(LOG.name)
    assert not structured_log.is_structured_log("train.log")


def test_the_lines_that_are_kept_are_all_that_is_read(tmp_path: Path) -> None:
    kept = tmp_path / LOG.name
    kept.write_bytes(b"".join(structured_log.kept_lines(LOG)))
    assert structured_log.read(kept) == structured_log.read(LOG)
    assert len(kept.read_bytes()) < len(LOG.read_bytes())
