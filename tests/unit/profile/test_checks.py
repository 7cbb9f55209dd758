"""Totals that must agree: of calls, of call paths, and with the file."""

import gc
import gzip
import json
import weakref

import numpy as np
import pytest
from bench import generate

import fastprof
from fastprof._core import _share
from fastprof.api.open import open_dict_lines
from fastprof.cli import main
from fastprof.model.columns import Ints, Values
from fastprof.profile import checks, recount
from fastprof.profile.callpath.attribution import attribute
from fastprof.profile.callpath.nesting import nest
from fastprof.readers.detect import read_trace
from support import dict_lines
from support.commands import run
from support.exports import Export
from support.nvprof_files import NvprofFile
from support.sqlite_files import execute

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


# A tree of four paths: 0 with 1 and 2 inside, 2 with 3 inside.
PARENT = ids(-1, 0, 0, 2)


class Found:
    """Two frames of path 1, and one each of the others."""

    frame_parent = ids(-1, 0, 0, 0, 3)
    node_of_frame = ids(0, 1, 1, 2, 3)
    node_parent = PARENT


def test_a_tree_that_is_right_is_taken():
    checks.tree("x", PARENT, Found.node_of_frame, Found.frame_parent, ids(3, -1, 0))
    checks.tree("x", ids(), ids(), ids(), ids(-1, -1))
    checks.tree("x", ids(), ids(), ids(), ids())


def test_a_tree_without_frames_is_looked_at_too():
    with pytest.raises(fastprof.CheckError, match="call-path tree"):
        checks.tree("x", ids(0), ids(), ids(), ids())


@pytest.mark.parametrize(
    ("parent", "node_of_frame", "node_of_kernel"),
    [
        (ids(-1, 0, 3, 2), Found.node_of_frame, ids(0)),  # a child before its parent
        (ids(-1, 0, 2, 2), Found.node_of_frame, ids(0)),  # its own parent
        (ids(-1, 0, 0, -5), Found.node_of_frame, ids(0)),
        (PARENT, ids(0, 1, 1, 2, 1), ids(0)),  # a frame with the path of another
        (PARENT, Found.node_of_frame, ids(0, 4)),  # a kernel beyond the tree
    ],
)
def test_a_tree_that_is_wrong_is_a_mistake(parent, node_of_frame, node_of_kernel):
    with pytest.raises(fastprof.CheckError, match="please report"):
        checks.tree("x", parent, node_of_frame, Found.frame_parent, node_of_kernel)


def test_the_work_of_a_path_is_its_own_and_that_of_its_children():
    checks.inclusive("x", ids(4, 4, 1, 2, -1), np.array([5, 7, 1, 2, 9]), Found)


def test_work_that_is_lost_between_two_trees_is_a_mistake():
    class Wrong(Found):
        node_parent = ids(-1, 0, 0, 1)  # the parts inside 2 count for 1

    with pytest.raises(fastprof.CheckError, match="kernels of path 1 and its descendants"):
        checks.inclusive("x", ids(4, 4, 1, 2, -1), np.array([5, 7, 1, 2, 9]), Wrong)


@pytest.mark.parametrize("share", [[3, 7, -1, 5], [3, 8, 0, 4], [10, 10, -1, 5]])
def test_shares_that_do_not_add_up_are_a_mistake(share):
    group, total = ids(0, 0, 1, 2), np.array([10, -1, 4])
    groups = _share.Groups(group, 3, group, np.ones(4, np.int64), 3)
    checks.shares("FLOPs", *groups.add_up(total, np.array([3, 7, -1, 4])))
    with pytest.raises(fastprof.CheckError, match="FLOPs: sum over kernels"):
        checks.shares("FLOPs", *groups.add_up(total, np.array(share)))


def test_sums_beyond_64_bits_are_whole():
    kind = Values(ids(0, 0, 0, 1), ["kernel", "graph"])
    duration = Ints(np.array([2**63 - 1, 2**63 - 1, -1, 5]))
    totals = checks.totals_of(kind, duration)
    assert (totals.rows, totals.time) == (
        {"kernel": 3, "graph": 1},
        {"kernel": 2**64 - 2, "graph": 5},
    )


def test_the_message_says_what_to_report_and_that_the_trace_is_not_needed():
    with pytest.raises(fastprof.CheckError) as error:
        checks.same("x.sqlite", checks.Totals({"kernel": 4}, {"kernel": 9}), checks.Totals())
    text = str(error.value)
    for part in ("x.sqlite: rows: expected {'kernel': 4}, found {}", "not the trace itself"):
        assert part in text
    assert f"fastprof {fastprof.__version__}, Python 3." in text
    assert "\n" not in text


# Files of each source.


def step() -> Export:
    made = Export().push_pop(0, 1000, "layer:a", tid=1)
    for i in range(5):
        sizes = f"aten::mm, seq = {i}, op_id = {i}, sizes = [[4, 8], [8, 2]]"
        made.push_pop(10 * i, 10 * i + 9, sizes, tid=1)
        made.launch(10 * i + 1, 10 * i + 2, corr=i, tid=1)
        made.kernel(100 + 10 * i, 107 + 10 * i, corr=i, name="sgemm")
    return made.graph_trace(500, 510, corr=9, graph=1)


@pytest.fixture
def file(tmp_path):
    return step().write(tmp_path / "x.sqlite")


@pytest.mark.parametrize("way", ["sqlite", "pages"])
def test_an_export_adds_up(way, file, monkeypatch):
    monkeypatch.setenv("FASTPROF_SCAN", way)
    text = fastprof.open(file, copies=True).check()
    assert text.startswith("5 kernel rows and 1 graph rows, 0.000 ms agree with the file, with")


def test_times_that_are_missing_or_strange_add_up(file):
    times = [("'7'", "50"), (f"{-(2**63)}", f"{2**63 - 1}"), ("90", "80"), ("1", f"{2**63 - 1}")]
    for row, (start, end) in enumerate(times, 1):
        execute(file, f"UPDATE {KERNELS} SET start = {start}, end = {end} WHERE rowid = {row}")
    assert "agree with the file" in fastprof.open(file).check()


def test_generated_captures_add_up(tmp_path):
    path = tmp_path / "net.sqlite"
    generate.generate(path, 3000, 5, 2)
    assert "agree with the file" in fastprof.open(path, copies=True).check()


def test_an_nvprof_file_adds_up(tmp_path):
    file = NvprofFile()
    for i in range(4):
        file.launch(i, i + 1, corr=i, tid=7).kernel(10 * i, 10 * i + 3, corr=i, name="k")
    assert fastprof.open(file.write(tmp_path / "net.sql")).check().startswith("4 kernel rows, ")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_trace_of_torch_profiler_adds_up(pack, tmp_path):
    events = [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10 * i, "dur": 1.0625}
        for i in range(6)
    ]
    (tmp_path / "t.json").write_bytes(pack(json.dumps({"traceEvents": events}).encode()))
    profile = fastprof.open(tmp_path / "t.json")
    assert "6 kernel rows, 0.006 ms agree with the file" in profile.check()
    assert profile.kernels["sil"].tolist() == [1063] * 6


def test_impossible_durations_of_torch_profiler_add_up(tmp_path):
    durations = ("1", "9223372036854775.807", "9223372036854775.808", "1e300", "-5", '"7"', "null")
    event = '{{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": {}}}'.format
    (tmp_path / "t.json").write_text(f'{{"traceEvents": [{", ".join(map(event, durations))}]}}')
    assert "7 kernel rows" in fastprof.open(tmp_path / "t.json").check()


def test_a_trace_with_several_lists_of_events_adds_up(tmp_path):
    event = '{"ph": "X", "cat": "kernel", "name": "k", "tid": 7, "ts": 1, "dur": 1}'
    lists = f'"traceEvents": [{event}, {event}], "traceEvents": [{event}]'
    (tmp_path / "t.json").write_text(f"{{{lists}}}")
    assert "3 kernel rows" in fastprof.open(tmp_path / "t.json").check()


def test_a_trace_that_is_cut_off_is_not_counted_again(tmp_path):
    (tmp_path / "t.json").write_text(
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1}, {"ph": '
    )
    text = fastprof.open(tmp_path / "t.json").check()
    assert text.endswith("the input is damaged: not counted again")


def test_dict_lines_add_up_from_a_file_and_from_a_pipe(file, tmp_path):
    lines = dict_lines.written(fastprof.open(file))
    (tmp_path / "net.dict").write_bytes(lines.getvalue())
    assert "agree with the file" in fastprof.open(tmp_path / "net.dict").check()
    text = open_dict_lines(lines, "standard input").check()
    assert text.endswith("the input comes from a pipe: not counted again")


def test_a_file_that_changed_since_is_no_mistake(file):
    profile = fastprof.open(file)
    execute(file, f"DELETE FROM {KERNELS} WHERE rowid = 1")
    with pytest.raises(fastprof.BadInputError, match="was changed since it was read"):
        profile.check()


def test_a_profile_is_freed_when_nobody_has_it(file):
    gc.disable()
    try:
        profile = fastprof.open(file)
        seen = weakref.ref(profile)
        del profile
        assert seen() is None
    finally:
        gc.enable()


def test_the_file_is_found_from_another_directory(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    profile = fastprof.open("x.sqlite")
    monkeypatch.chdir("/")
    assert "agree with the file" in profile.check()


# The command. A fault is injected into the second count.


@pytest.mark.parametrize("words", [["parse"], ["prof", "--csv"], ["prof", "-w", "150"]])
def test_the_command_checks_when_it_is_asked_to(words, file):
    plain, checked = run(*words, file), run(*words, file, "--check")
    assert (plain.returncode, checked.returncode) == (0, 0)
    assert plain.stdout == checked.stdout
    assert b"checked" not in plain.stderr
    assert b"fastprof: checked: 5 kernel rows and 1 graph rows" in checked.stderr


def test_a_mistake_is_exit_code_3_and_no_report(file, tmp_path, monkeypatch, capsys):
    fault = recount._SUMS.replace("late - early ELSE", "late - early + 1 ELSE")
    monkeypatch.setattr(recount, "_SUMS", fault)
    assert main(["prof", str(file), "--check", "-o", str(tmp_path / "report")]) == 3
    message = capsys.readouterr().err.splitlines()[-1]
    assert "ns of GPU time: expected {'kernel': 40" in message
    assert "found {'kernel': 35" in message
    assert not (tmp_path / "report").exists()


def test_a_kernel_that_is_lost_on_the_way_is_a_mistake(file):
    trace = read_trace(file)
    result = attribute(nest(trace)).attribution
    result.node_of_frame[-1] = 0
    kernels = result.node_of_frame[result.frame_of_kernel]
    with pytest.raises(fastprof.CheckError):
        checks.tree(
            trace.name, result.node_parent, result.node_of_frame, result.frame_parent, kernels
        )
