"""A trace of one process with work whose launch is not recorded: one GPU in every report."""

import json
from typing import Any

import pytest

import fastprof
from real import open_traces
from real.raw_work import union, work_of
from support.commands import run
from support.real_data import real

QWEN = "kineto/qwen_h100_unlaunched.json.gz"


def profile() -> Any:
    return open_traces.profile(QWEN, copies=True)


def test_the_capture_is_that_of_one_gpu_in_every_report() -> None:
    work = [(each.start, each.end) for each in work_of(QWEN)]
    span, on = max(end for _, end in work) - work[0][0], union(work)
    assert [round(each / 1e6, 2) for each in (span, on)] == [49.65, 45.65]
    result = profile()
    assert set(result.kernels["pid"].tolist()) == {25286}
    assert result.contents.processes == [25286]
    (row,) = result.steps().rows()
    close = {"rel": 1e-5}
    assert row["wall_ns"] == pytest.approx(span, **close)
    assert row["busy_ns"] == pytest.approx(on, **close)
    assert row["idle_ns"] == pytest.approx(span - on, **close)
    assert result.overview().facts["span_ns"] == pytest.approx(span, **close)
    assert result.overview().facts["busy_ns"] == pytest.approx(on, **close)
    assert result.advise().facts["step_ns"] == pytest.approx(span, **close)
    assert result.idle().total["ns"] == pytest.approx(span - on, **close)
    recorded, without_syncs = result.whatif(no_sync=True)["wall_ns"].tolist()
    assert recorded == pytest.approx(span, **close)
    assert on * (1 - 1e-5) <= without_syncs <= recorded


def test_info_and_the_page_name_one_process_and_one_gpu() -> None:
    info = json.loads(run("info", real(QWEN), "--json").stdout)
    assert [process["pid"] for process in info["processes"]] == [25286]
    page = fastprof.open(real(QWEN)).report().html
    assert "2 GPUs" not in page
    assert "49.65 ms" in page


def test_findings_are_of_the_whole_capture() -> None:
    """Half of the calls counted where each GPU of two had half of the work."""
    result = profile()
    names = ("op", "sil", "call")
    op, time, call = (result.kernels[name] for name in names)
    copied = int(time[op == "contiguous"].sum())
    assert round(copied / 1e6, 2) == 2.77
    rows = {row["id"]: row for row in result.advise(min=0).rows()}
    assert rows["unfused-pointwise"]["saving_ns"] <= result.overview().facts["busy_ns"]
    assert len(set(call[op == "scaled_dot_product_attention"].tolist())) == 24
