"""Start-up is left out of the answer, and `trim`, against plain SQL."""

import numpy as np
import pytest

from fastprof.page.section import PageSource
from fastprof.page.sections import answer
from real import open_traces
from support.real_data import open_read_only, real

LM = "nsys/ranges_lm_a100_nsys2024.sqlite"
RTX3070 = "nsys/ranges_rtx3070_nsys2025.sqlite"

_LAUNCHED = """
    SELECT k.start, k.end FROM {} k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
    ON r.correlationId = k.correlationId WHERE r.start >= ? AND r.start < ?"""
_TABLES = """
    SELECT name FROM sqlite_master WHERE name IN ('CUPTI_ACTIVITY_KIND_KERNEL',
    'CUPTI_ACTIVITY_KIND_MEMCPY', 'CUPTI_ACTIVITY_KIND_MEMSET')"""
_RANGE = """
    SELECT n.start, n.end FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId
    WHERE coalesce(n.text, s.value) = ? AND n.end IS NOT NULL"""


def launched_in(path: str, name: str) -> tuple[int, int]:
    """GPU time of all work that is launched in a range, and its number, by SQL.

    The work of these captures does not overlap.
    """
    with open_read_only(real(path)) as export:
        ((start, end),) = export.execute(_RANGE, (name,)).fetchall()
        work = [
            row
            for (table,) in export.execute(_TABLES).fetchall()
            for row in export.execute(_LAUNCHED.format(table), (start, end))
        ]
    return sum(end - start for start, end in work), len(work)


def test_the_answer_is_about_the_benchmark():
    profile = open_traces.profile(LM, copies=True)
    steps = profile.find_steps()
    busy, n = launched_in(LM, "benchmark_loop")
    assert steps.left_out == (
        "capture of 7.863 s: start-up 5.338 s (init_model, generate_data, warmup) is left out, "
        "then 3 repetitions in benchmark_loop; --trim : for all of it"
    )
    assert (len(steps), np.count_nonzero(steps.of_kernel >= 0)) == (3, n)
    table = profile.overview()
    assert steps.left_out in table.text().replace("\n  ", " ")
    assert table.facts["step_busy_ns"] * 3 == pytest.approx(busy, rel=1e-6)
    first = next(table["ops"].rows())
    assert (first["range"], first["kind"]) == ("benchmark_loop", "gemm")
    assert first["step_ns"] * 3 / 1e6 == pytest.approx(2220.86, abs=0.1)
    assert not {"exposed-copy", "alloc"} & set(table["findings"]["id"].tolist())


def test_the_benchmark_of_forward_passes_follows_warm_up_with_backward_passes():
    profile = open_traces.profile(RTX3070, copies=True)
    steps = profile.find_steps()
    assert "start-up 1.806 s (Initialize Model, Warm-up)" in steps.left_out
    assert steps.description == "10 steps (Forward)"
    busy, n = launched_in(RTX3070, "Benchmark Forward Only")
    assert np.count_nonzero(steps.of_kernel >= 0) == pytest.approx(n, rel=0.01)
    assert profile.overview().facts["step_busy_ns"] * 10 == pytest.approx(busy, rel=0.01)


@pytest.mark.parametrize("part", ["warmup", "warm*"])
def test_a_part_named_by_a_range(part):
    profile = open_traces.profile(LM, copies=True).trim(part)
    busy, n = launched_in(LM, "warmup")
    assert profile.overview().facts["busy_ns"] == busy
    summary = profile.summary()
    assert (summary.total["gpu_ns"], summary.total["kernels"]) == (busy, n)


def test_parts_by_time_add_up_to_the_capture():
    profile = open_traces.profile(LM, copies=True)
    parts = [profile.trim(part).summary().total for part in (":2.5s", "2.5s:6s", "6s:")]
    whole = profile.trim(":").summary().total
    for name in ("gpu_ns", "kernels"):
        assert sum(part[name] for part in parts) == whole[name]


@pytest.mark.parametrize("name", ["cuda_gpu_kern_sum", "cuda_api_sum", "nvtx_sum"])
def test_tables_of_nsys_add_up_over_parts(name):
    profile = open_traces.profile(LM, copies=True)

    def count(part: str) -> int:
        table = profile.trim(part).report("stats", names=[name])
        return int(sum(table["Num Calls" if name == "cuda_api_sum" else "Instances"]))

    parts = [count(part) for part in (":2.5s", "2.5s:6s", "6s:")]
    assert max(parts) < sum(parts)
    assert sum(parts) == count(":")


def test_allocations_add_up_over_parts(path="kineto/resnet50_2021_stack_memory.json.gz"):
    profile = open_traces.profile(path, copies=True)
    totals = [profile.trim(part).memory().total for part in (":400ms", "400ms:", ":")]
    for name in ("allocations", "allocated_bytes"):
        assert totals[0][name] + totals[1][name] == totals[2][name] > totals[0][name] > 0


@pytest.mark.parametrize(
    ("path", "share"),
    [
        ("kineto/particle_first_calls_a100.json.gz", "74%"),
        ("kineto/transformer_a100_2024.json.gz", "65%"),
        ("pyprof/vsr_a100_nsys2024.sqlite", "83%"),
    ],
)
def test_captures_of_first_calls_say_so(path, share):
    profile = open_traces.profile(path, copies=True)
    assert profile.find_steps().source == "none"
    text = profile.overview().text()
    line = f"first calls take {share} of the capture (code loading"
    assert line in text
    assert line in answer.section(PageSource(profile)).lead[1]


@pytest.mark.parametrize(
    "path",
    [
        "nsys/fsdp_upload_2gpu_h100.sqlite",
        "nsys/emit_nvtx_2gpu_nsys2026.sqlite",
        "kineto/sd35_compile_mi300.json.gz",
        "kineto/dlrm_rank0.json.gz",
        "kineto/resnet50_2021_4workers.json.gz",
        "pyprof/lm_v100_nvprof.sql",
    ],
)
def test_other_captures_have_no_start_up(path):
    assert open_traces.profile(path, copies=True).find_steps().left_out == ""
