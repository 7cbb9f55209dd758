"""What idle time and steps say about torch.compile: autotuning, recompilations, graph breaks."""

from __future__ import annotations

import shutil
from pathlib import Path

import fastprof
from support.compiled_programs import FOLDER, FORWARD, graphs, write_trace
from support.kineto_files import KinetoFile

AGAIN = "compiled again as 0/1: 0/0: tensor 'x' size mismatch at index 0. expected 32, actual 33"


def idle_notes(trace: KinetoFile, path: Path) -> str:
    trace.launch(0, 10, 1).kernel(20, 30, 1, "k")
    trace.launch(9_000_000, 9_000_010, 2).kernel(9_000_020, 9_000_030, 2, "k")
    return "\n".join(fastprof.open(trace.write(path)).idle().notes)


def test_autotuning_and_recorded_graphs_take_time_once(tmp_path: Path) -> None:
    """An inner range of the same kind is a part of the outer one."""
    trace = KinetoFile()
    trace.op(1_000_000, 4_000_000, "mm_template_autotuning (dynamo_timed)")
    trace.op(2_000_000, 3_000_000, "CachingAutotuner.benchmark_all_configs (dynamo_timed)")
    trace.op(5_000_000, 5_500_000, "CUDAGraphNode.record (dynamo_timed)")
    notes = idle_notes(trace, tmp_path / "t.json")
    assert "JIT compilation: autotuning takes 3 ms, 2 times" in notes
    assert "JIT compilation: recording CUDA graphs takes 500 us, 1 times" in notes


def test_other_ranges_are_not_named(tmp_path: Path) -> None:
    trace = KinetoFile().op(1_000_000, 2_000_000, "build_guards (dynamo_timed)")
    trace.op(2_000_000, 3_000_000, "mm_template_autotuning")
    assert "JIT compilation:" not in idle_notes(trace, tmp_path / "t.json")


def test_recompilations_and_graph_breaks_have_their_reason(tmp_path: Path) -> None:
    folder = tmp_path / "compiled"
    shutil.copytree(FOLDER, folder)
    header = (
        'V1128 07:39:43.496000 24548 torch/_dynamo/symbolic_convert.py:5098] {"artifact": '
        '{"name": "dynamo_graph_break_reason", "encoding": "string"}, "frame_id": 0, '
        '"frame_compile_id": 0}\n'
    )
    text = "\tGraph Break Reason: print\n" + '\t  File "/m.py", line 9, in f\n'
    for i in range(2):  # of two compilations
        (folder / f"dedicated_log_torch_trace_{i}.log").write_text(header + text)
    trace = write_trace(tmp_path / "t.json", [(graphs()[FORWARD], True)])
    profile = fastprof.open(trace, compiled=folder)
    for report in (profile.idle(), profile.steps()):
        assert report.notes.count(AGAIN) == 1
        assert report.notes.count("graph break at /m.py:9: print") == 1
    assert AGAIN not in fastprof.open(trace).idle().notes
