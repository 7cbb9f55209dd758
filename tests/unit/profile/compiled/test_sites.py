"""Which call of a compiled graph a kernel is from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

import fastprof
from fastprof.profile.compiled.sites import CompiledWork
from support.compiled_programs import BACKWARD, FOLDER, FORWARD, graphs, write_replays, write_trace
from support.kineto_files import KinetoFile


def work(path: Path) -> CompiledWork:
    result = fastprof.open(path, compiled=FOLDER).source.compiled_work
    assert result is not None
    return result


def ops(found: CompiledWork) -> list[set[str]]:
    """The operators of the parts of each kernel; "" for the kernel's own."""
    return [
        {share.op for share in found.shares[site]} if site >= 0 else set()
        for site in found.site.tolist()
    ]


def test_kernels_are_the_calls_of_the_graph_with_the_recorded_key(tmp_path: Path) -> None:
    all_graphs = graphs()
    calls = [(all_graphs[FORWARD], True), (all_graphs[BACKWARD], True)] * 2
    result = work(write_trace(tmp_path / "t.json", calls))
    n = len(all_graphs[FORWARD].kernels) + len(all_graphs[BACKWARD].kernels)
    assert (result.site >= 0).all()
    assert (result.site[:n] == result.site[n:]).all()
    assert ops(result)[:5] == [
        {"layer_norm"}, {""}, {"gelu", "mul", "add", "layer_norm"}, {""},
        {"gelu", "mul", "add", "sum"},
    ]  # fmt: skip


def test_calls_of_one_name_are_told_apart_by_their_order(tmp_path: Path) -> None:
    """The two linear layers are `aten::addmm`; their lines are alike, their sites differ."""
    result = work(write_trace(tmp_path / "t.json", [(graphs()[FORWARD], True)]))
    assert result.site[1] != result.site[3]
    assert not np.array(result.ambiguous)[result.site].any()


def test_other_compilations_of_the_same_names_are_told_by_the_key(tmp_path: Path) -> None:
    """0/0 and 0/1 have kernels of equal names; the tensors of 0/1 are larger."""
    first, _, again, _ = graphs()
    result = work(write_trace(tmp_path / "t.json", [(first, True), (again, True)]))
    assert set(result.site[:5]).isdisjoint(result.site[5:])


def test_a_graph_of_another_key_is_known_by_its_kernels(tmp_path: Path) -> None:
    renamed = replace(graphs()[BACKWARD], key="fother")
    result = work(write_trace(tmp_path / "t.json", [(renamed, True)]))
    assert (result.site >= 0).all() and not np.array(result.ambiguous)[result.site].any()


def test_a_replay_is_known_by_its_generated_kernels(tmp_path: Path) -> None:
    result = work(write_replays(tmp_path / "t.json", graphs()[FORWARD], 3))
    sites = result.site.reshape(3, -1)
    assert (sites == sites[0]).all()
    assert (sites[0] >= 0).tolist() == [True, False, True, False, True]


def test_a_kernel_outside_of_graphs_has_the_calls_of_its_name_alike(tmp_path: Path) -> None:
    trace = KinetoFile().launch(0, 10, 1).kernel(20, 30, 1, "cpp_fused_native_layer_norm_0")
    trace.launch(12, 14, 2).kernel(30, 40, 2, "sgemm")
    result = work(trace.write(tmp_path / "t.json"))
    assert ops(result) == [{"layer_norm"}, set()]


def test_a_graph_that_lacks_a_call_has_those_of_the_name_alike(tmp_path: Path) -> None:
    """Work that the profiler lost: which of the two `aten::addmm` ran is unknown."""
    forward = graphs()[FORWARD]
    cut = replace(forward, kernels=forward.kernels[:2])
    result = work(write_trace(tmp_path / "t.json", [(cut, True)]))
    assert (result.site >= 0).all()
    assert len(result.shares[result.site[1]]) == 1  # the same line


def test_ranges_that_name_the_call(tmp_path: Path) -> None:
    forward = graphs()[FORWARD]
    kernel = forward.kernels[2]
    trace = KinetoFile().annotation(0, 50, f"## inductor_kernel:{kernel.name}:{kernel.handle} ##")
    result = work(trace.launch(5, 10, 1).kernel(60, 70, 1, "vendor").write(tmp_path / "t.json"))
    assert ops(result) == [{"gelu", "mul", "add", "layer_norm"}]


def test_a_trace_without_kernels(tmp_path: Path) -> None:
    assert len(work(KinetoFile().op(0, 5, "aten::mm").write(tmp_path / "t.json")).site) == 0
