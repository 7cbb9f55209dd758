"""Launches whose kernels the file lacks: counted per step, and left out of means."""

import sqlite3
from typing import Any

import pytest

import fastprof
from support.exports import Export
from support.kineto_files import KinetoFile

US = 1000


def steps_of_kineto(*lost: int, n: int = 5, per_step: int = 4) -> KinetoFile:
    """Steps of 100 us with some launches; `lost` are those without kernels, counted from 0."""
    trace = KinetoFile()
    trace.launch(0, 1 * US, 999).kernel(2 * US, 3 * US, 999, "before")
    for step in range(n):
        start = (100 + step * 100) * US
        trace.annotation(start, start + 100 * US, f"ProfilerStep#{step}")
        for i in range(per_step):
            at, corr = start + (10 + 20 * i) * US, step * per_step + i + 1
            trace.launch(at, at + 2 * US, corr)
            if corr - 1 not in lost:
                trace.kernel(at + 5 * US, at + 15 * US, corr, "sgemm")
    return trace


def steps_of_nsys(*lost: int, n: int = 5, per_step: int = 4) -> Export:
    """The same as an export of Nsight Systems."""
    export = Export()
    export.launch(0, 1 * US, 999, 1).kernel(2 * US, 3 * US, 999, name="before")
    for step in range(n):
        start = (100 + step * 100) * US
        export.push_pop(start, start + 100 * US, f"step {step}", 1)
        for i in range(per_step):
            at, corr = start + (10 + 20 * i) * US, step * per_step + i + 1
            export.launch(at, at + 2 * US, corr, 1)
            if corr - 1 not in lost:
                export.kernel(at + 5 * US, at + 15 * US, corr, name="sgemm")
    return export


@pytest.fixture(params=[steps_of_kineto, steps_of_nsys], ids=["kineto", "nsys"])
def steps_of(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_nothing_is_lost_of_a_whole_trace(opened, steps_of):
    steps = opened(steps_of()).find_steps()
    assert steps.lost is None
    assert steps.incomplete == ""
    assert steps.is_counted.all()


def test_means_leave_out_a_step_that_lacks_work(opened, steps_of):
    steps = opened(steps_of(9, 10)).find_steps()
    assert steps.lost.tolist() == [0, 0, 2, 0, 0]
    assert steps.is_counted.tolist() == [True, True, False, True, True]
    assert steps.incomplete == (
        "the file lacks the GPU work of 2 of 21 launches, in step 2, which means leave out"
    )


def test_the_first_line_says_it_and_the_steps_are_marked(opened, steps_of):
    profile = opened(steps_of(9))
    answer = profile.overview().facts["answer"]
    assert answer.startswith("Incomplete: the file lacks the GPU work of 1 of 21 launches")
    assert profile.overview().text().startswith("Incomplete: the file lacks")
    flags = profile.report("steps")["flag"].tolist()
    assert flags.count("lost work") == 1
    assert flags[2] == "lost work"
    assert profile.overview().facts["steps"]["lost_launches"] == 1


def test_steps_count_if_none_is_whole(opened, steps_of):
    steps = opened(steps_of(0, 4, 8, 12, 16)).find_steps()
    assert steps.lost.tolist() == [1] * 5
    assert steps.is_counted.all()
    assert steps.incomplete.endswith("in 5 of 5 steps, so times of the GPU are too small")


def test_work_that_is_lost_outside_of_steps_concerns_no_step(opened):
    trace = steps_of_kineto()
    trace.launch(90 * US, 91 * US, 5000)
    steps = opened(trace).find_steps()
    assert steps.lost is None
    assert steps.is_counted.all()


def test_launches_that_a_graph_captures_are_not_lost(opened):
    trace = steps_of_kineto(9)
    trace.launch(310 * US, 311 * US, 6000, name="cudaStreamBeginCapture")
    trace.launch(399 * US, 400 * US, 6001, name="cudaStreamEndCapture")
    assert opened(trace).find_steps().lost is None
    export = steps_of_nsys(9)
    export.launch(310 * US, 311 * US, 6000, 1, "cudaStreamBeginCapture_v10000")
    export.launch(399 * US, 400 * US, 6001, 1, "cudaStreamEndCapture_v10000")
    assert opened(export).find_steps().lost is None


def test_a_call_recorded_by_runtime_and_driver_is_one_launch(opened):
    trace = steps_of_kineto(9)
    at = (100 + 2 * 100 + 10 + 20) * US
    trace.launch(at, at + 1 * US, 10, name="cuLaunchKernel", cat="cuda_driver")
    assert opened(trace).find_steps().lost.tolist() == [0, 0, 1, 0, 0]


def test_copies_and_host_functions_are_no_launches_of_kernels(opened):
    trace = steps_of_kineto()
    trace.launch(250 * US, 251 * US, 7000, name="cudaMemcpyAsync")
    trace.launch(252 * US, 253 * US, 7001, name="cudaLaunchHostFunc")
    assert opened(trace).find_steps().lost is None


def test_a_few_at_the_end_of_a_capture_are_a_note(opened):
    trace = KinetoFile()
    for i in range(300):
        at = i * 20 * US
        trace.launch(at, at + 2 * US, i + 1)
        if i < 299:
            trace.kernel(at + 5 * US, at + 15 * US, i + 1, f"kernel_{i % 7}_{i % 11}")
    profile = opened(trace)
    steps = profile.find_steps("none")
    assert steps.lost.tolist() == [1]
    assert steps.incomplete == ""
    assert steps.notes[0].startswith("the file lacks the GPU work of 1 of 300 launches")


def test_info_counts_them_and_tells_how_to_record(opened, capsys, tmp_path):
    path = steps_of_nsys(9).write(tmp_path / "lost.sqlite")
    from fastprof import cli

    assert cli.main(["info", str(path)]) == 0
    text = capsys.readouterr().out
    assert "20, and 1 of kernels that are not in the file" in text
    assert "synchronize the GPU before the recording ends" in text
    assert fastprof.open(path).contents.lost_launches == 1


def test_the_window_of_trim_has_its_own_losses(opened):
    profile = opened(steps_of_kineto(17))
    assert profile.find_steps().lost.tolist() == [0, 0, 0, 0, 1]
    part = profile.trim(":0.25ms")
    assert part.find_steps().lost is None


def test_info_has_the_recorder_s_warnings_of_missing_events(tmp_path):
    path = steps_of_nsys().write(tmp_path / "warned.sqlite")
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, timestampType INTEGER, "
            "source INTEGER, severity INTEGER, text TEXT, globalPid INTEGER)"
        )
        of_this, of_another = 100 << 24, 999 << 24
        rows = [
            (2, "Not all CUDA events might have been collected.", of_this),
            (2, "Not all CUDA events might have been collected.", of_this),
            (2, "Not all NVTX events might have been collected.", of_another),
            (2, "No OpenGL events collected. Does the process use OpenGL?", of_this),
            (1, "Number of CUDA events collected: 26,423, none dropped.", of_this),
            (3, "12 events\nwere dropped", None),
        ]
        database.executemany("INSERT INTO DIAGNOSTIC_EVENT VALUES (0, 1, 2, ?, ?, ?)", rows)
    expected = ["Not all CUDA events might have been collected", "12 events were dropped"]
    assert fastprof.open(path).about.diagnostics == expected


def test_launches_in_functions_without_their_callers_are_counted(opened, tmp_path, capsys):
    trace = steps_of_kineto()
    trace.python(0, 700 * US, "train.py(1): f", number=1, parent=None)
    trace.python(105 * US, 150 * US, "train.py(2): f", number=2, parent=1)
    # Function 77 is not in the file.
    trace.python(305 * US, 340 * US, "train.py(3): f", number=3, parent=77)
    trace.python(306 * US, 330 * US, "train.py(4): f", number=4, parent=3)
    profile = opened(trace)
    assert profile.contents.truncated_stacks == 2
    steps = profile.find_steps()
    assert steps.lost is None
    assert steps.is_counted.all()
    assert steps.notes == (
        "2 of 21 launches lack the callers of their Python functions, 2 in step 2: their layers "
        "and source lines may be unknown",
    )
    assert not any("callers" in note for note in profile.trim("0.35ms:").find_steps().notes)
    assert any("callers" in note for note in profile.trim("0.25ms:").find_steps().notes)
    from fastprof import cli

    assert cli.main(["info", str(trace.write(tmp_path / "cut.json"))]) == 0
    text = capsys.readouterr().out
    assert "21; 2 lack the callers of their Python functions" in text
    assert "keep the trace whole" in text


def test_stacks_that_are_all_cut_are_no_note(opened):
    trace = steps_of_kineto()
    trace.python(0, 700 * US, "train.py(1): f", number=1, parent=77)
    profile = opened(trace)
    assert profile.contents.truncated_stacks == 21
    assert profile.find_steps().notes == ()


def test_ranges_without_any_of_their_work_are_counted(opened, tmp_path, capsys):
    from fastprof import cli

    for trace, annotate in (
        (steps_of_kineto(8, 9), lambda t, *a: t.annotation(*a)),
        (steps_of_nsys(8, 9), lambda t, *a: t.push_pop(*a, 1)),
    ):
        annotate(trace, 305 * US, 345 * US, "forward")  # both launches lack their kernels
        annotate(trace, 325 * US, 365 * US, "loss")  # one of two
        annotate(trace, 391 * US, 395 * US, "without launches")
        profile = opened(trace)
        assert profile.contents.ranges_without_work == 1
    assert cli.main(["info", str(trace.write(tmp_path / "ranges.sqlite"))]) == 0
    assert "1 of yours launch work, of which the file has none" in " ".join(
        capsys.readouterr().out.split()
    )


def test_ranges_that_are_open_at_the_end_are_counted(opened, tmp_path, capsys):
    from fastprof import cli

    export = steps_of_nsys()
    export.push_pop(600 * US, None, "never closed", 1)
    path = export.write(tmp_path / "open.sqlite")
    assert fastprof.open(path).contents.open_ranges == 1
    assert cli.main(["info", str(path)]) == 0
    assert "6 user; 1 open at the end" in capsys.readouterr().out
