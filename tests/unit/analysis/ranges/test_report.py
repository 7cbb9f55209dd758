"""`ranges` on small traces, against figures by hand, and its notes."""

from pathlib import Path
from typing import Any

import pytest

import fastprof
from support.commands import run
from support.kineto_files import KinetoFile

ENGINE, OTHER = 2, 3  # threads


def step(trace: KinetoFile, at: int, number: int) -> None:
    """A step with forward, backward and work of another thread.

    forward launches kernels at 500 to 600 and 700 to 720; another thread one at 610 to 650.
    """
    seq, corr = 2 * number, 10 * number
    trace.annotation(at, at + 1000, f"step {number}")
    trace.annotation(at + 100, at + 300, "forward")
    trace.op(at + 110, at + 150, "aten::mm", dims=[[2, 3], [3, 4]], types=["float"] * 2, seq=seq)
    trace.launch(at + 120, at + 130, corr).kernel(at + 500, at + 600, corr)
    trace.op(at + 160, at + 200, "aten::add", dims=[[2, 4]] * 2, types=["float"] * 2, seq=seq + 1)
    trace.launch(at + 170, at + 180, corr + 1).kernel(at + 700, at + 720, corr + 1, "add")
    trace.annotation(at + 350, at + 480, "backward")
    name = "autograd::engine::evaluate_function: MmBackward0"
    trace.op(at + 400, at + 450, name, ENGINE, seq=seq, dims=[], types=[])
    trace.op(at + 401, at + 449, "MmBackward0", ENGINE, seq=seq, dims=[], types=[])
    trace.launch(at + 410, at + 420, corr + 2, ENGINE).kernel(at + 800, at + 900, corr + 2)
    trace.launch(at + 450, at + 460, corr + 3, OTHER)
    trace.kernel(at + 610, at + 650, corr + 3, "other", stream=8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    trace = KinetoFile()
    step(trace, 0, 1)
    step(trace, 2000, 2)
    trace.annotation(1100, 1200, "enumerate(DataLoader)#_Iter.__next__")
    return trace.write(tmp_path / "steps.json")


EXPECTED: dict[str, dict[str, Any]] = {
    "step *": {
        "level": 0, "count": 2, "wall_ns": 2000, "wall_median_ns": 1000, "gpu_ns": 440,
        "with_backward_ns": 440, "forward_ns": 240, "backward_ns": 200, "other_ns": 0,
        "own_ns": 0, "projected_ns": 800, "idle_ns": 280, "kernels": 6,
    },
    "step *:forward": {
        "level": 1, "count": 2, "wall_ns": 400, "wall_median_ns": 200, "gpu_ns": 240,
        "with_backward_ns": 440, "forward_ns": 240, "backward_ns": 200, "other_ns": 0,
        "own_ns": 240, "projected_ns": 440, "idle_ns": 120, "kernels": 4,
    },
    "step *:backward": {
        "level": 1, "count": 2, "wall_ns": 260, "wall_median_ns": 130, "gpu_ns": 200,
        "with_backward_ns": 200, "forward_ns": 0, "backward_ns": 200, "other_ns": 0,
        "own_ns": 200, "projected_ns": 200, "idle_ns": 0, "kernels": 2,
    },
    "enumerate(DataLoader)#_Iter.__next__": {
        "level": 0, "count": 1, "wall_ns": 100, "wall_median_ns": 100, "gpu_ns": 0,
        "with_backward_ns": 0, "forward_ns": 0, "backward_ns": 0, "other_ns": 0,
        "own_ns": 0, "projected_ns": 0, "idle_ns": 0, "kernels": 0,
    },
    "(no range)": {
        "level": None, "count": None, "wall_ns": None, "wall_median_ns": None, "gpu_ns": 80,
        "with_backward_ns": 80, "forward_ns": 0, "backward_ns": 0, "other_ns": 80,
        "own_ns": 80, "projected_ns": 0, "idle_ns": 0, "kernels": 2,
    },
}  # fmt: skip


def test_a_row_is_a_path_of_names_in_order_of_start(path: Path) -> None:
    table = fastprof.open(path, copies=True).ranges_table()
    result = {row.pop("range"): row for row in table.rows()}
    assert list(result) == list(EXPECTED)
    for name, row in result.items():
        row.pop("name")
        assert row == EXPECTED[name], name
    assert table.total["gpu_ns"] == table.total["with_backward_ns"] == 520
    assert sum(table["own_ns"]) == 520


def test_text_indents_nested_ranges_and_flat_names_all_ranges_around(path: Path) -> None:
    profile = fastprof.open(path, copies=True)
    lines = profile.ranges_table().text().splitlines()
    assert [line[:12].rstrip() for line in lines[1:4]] == ["step *", "  forward", "  backward"]
    flat = profile.ranges_table(flat=True)
    assert flat["range"].tolist()[:3] == ["step *:forward", "step *:backward", "(no range)"]
    assert "step *:forward" in flat.text()


def test_where_selects_work_and_the_ranges_around_it(path: Path) -> None:
    table = fastprof.open(path, copies=True).ranges_table(where="dir=bprop")
    result = {row["range"]: row for row in table.rows()}
    assert list(result) == ["step *", "step *:forward", "step *:backward"]
    assert result["step *"]["gpu_ns"] == result["step *"]["projected_ns"] == 200
    assert result["step *"]["with_backward_ns"] == 200
    assert result["step *:forward"]["gpu_ns"] == 0
    assert result["step *:backward"]["gpu_ns"] == 200


def test_crossing_ranges_have_the_work_launched_while_they_are_open(tmp_path: Path) -> None:
    trace = KinetoFile().annotation(0, 100, "a").annotation(50, 200, "b")
    for corr, at in enumerate((10, 60, 150), 1):
        trace.launch(at, at + 1, corr).kernel(1000 * corr, 1000 * corr + 10, corr)
    table = fastprof.open(trace.write(tmp_path / "cross.json")).ranges_table()
    result = {row["range"]: row for row in table.rows()}
    assert {name: row["gpu_ns"] for name, row in result.items()} == {"a": 20, "a:b": 10, "b": 10}
    assert {name: row["count"] for name, row in result.items()} == {"a": 1, "a:b": 1, "b": 0}
    assert [result[name]["projected_ns"] for name in ("a", "a:b")] == [1010, 1010]


def test_notes_say_what_is_missing(tmp_path: Path) -> None:
    def note(trace: KinetoFile) -> str:
        done = run("ranges", trace.write(tmp_path / "trace.json"))
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().splitlines()[-1]

    plain = KinetoFile().launch(10, 20, 1).kernel(30, 40, 1)
    assert note(plain).startswith("no ranges of your own: open them with")
    assert note(KinetoFile().annotation(0, 9, "load")) == (
        "no GPU work in this capture: CPU time only"
    )
    alone = KinetoFile().annotation(0, 50, "work").launch(10, 20, 1).kernel(30, 40, 1)
    assert note(alone).startswith("with backward = gpu, as backward is not linked to forward: ")
    alone.op(12, 19, "aten::mm", dims=[[2, 3], [3, 4]], types=["float"] * 2)
    assert "with backward =" not in note(alone)
