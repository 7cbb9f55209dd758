"""`lines`: source lines of generated captures, against hand-computed times."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from bench.gpu.page import RECORDED

import fastprof
from fastprof.analysis.lines.report import SourceFile, SourceFiles
from fastprof.errors import ReportError
from support.commands import run
from support.exports import Export
from support.kineto_files import KinetoFile

ENGINE = "autograd::engine::evaluate_function: "
TRAIN = """\
import torch


def step(x):
    y = net(x)

    return y


class Net:
    def forward(self, x):
        if x:
            return self.forward(x[1:])
\treturn relu(x)


data = load()
out = step(data)
""".replace("\t", "        ")


class Run(Export):
    """A run: `work(ns, *lines)` launches a kernel of that time from a call stack."""

    def __init__(self) -> None:
        super().__init__()
        self.n_kernels = 0

    def work(self, ns: int, *lines: str, backward_of: int | None = None) -> Run:
        """`backward_of`: the backward kernel of the n-th kernel."""
        self.n_kernels += 1
        start, number = 1_000_000 * self.n_kernels, backward_of or self.n_kernels
        node = f"ReluBackward0, seq = {number}, op_id = {100 + number}"
        operator = f"aten::relu, seq = {number}, op_id = {number}"
        ranges = [str({"traceMarker": list(lines)})] if lines else []
        ranges += [ENGINE + node, node] if backward_of else [operator]
        tid = 2 if backward_of else 1
        self.nest(start, start + 1000, *ranges, tid=tid)
        self.launch(start + 500, start + 510, self.n_kernels, tid)
        self.kernel(start + 2000, start + 2000 + ns, self.n_kernels)
        return self


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    return folder


def net() -> Run:
    """A line that loads, one that calls the model, which is recursive, and a library's line."""
    run = Run()
    run.work(3, "proj/train.py:17")
    run.work(10, "proj/train.py:18", "proj/train.py:5", "proj/train.py:14")
    run.work(
        20, *["proj/train.py:18", "proj/train.py:5", *["proj/train.py:13"] * 2], "x/train.py:1"
    )
    run.work(40, "proj/train.py:18", "site-packages/lib/ops.py:8")
    run.work(100, backward_of=2)
    run.work(7)
    return run


def times(table: fastprof.Table) -> dict[str, tuple[Any, ...]]:
    names = ("forward_ns", "backward_ns", "other_ns", "gpu_ns", "own_ns", "kernels")
    return {row["frame"]: tuple(row[name] for name in names) for row in table.rows()}


def test_a_line_has_the_time_of_all_that_it_calls_and_its_backward(opened: Any) -> None:
    table = opened(net()).lines()
    assert times(table) == {
        "proj/train.py:5": (30, 100, 0, 130, 0, 3),
        "proj/train.py:13": (20, 0, 0, 20, 0, 1),  # recursion counts once
        "proj/train.py:14": (10, 100, 0, 110, 110, 2),
        "proj/train.py:17": (3, 0, 0, 3, 3, 1),
        "proj/train.py:18": (70, 100, 0, 170, 40, 4),
        "x/train.py:1": (20, 0, 0, 20, 20, 1),
        "(no line)": (7, 0, 0, 7, 7, 1),
    }
    assert sum(table["own_ns"]) == table.total["gpu_ns"] == 180
    assert table["share"][0] == pytest.approx(130 / 180)
    first = next(table.rows())
    assert (first["file"], first["line"], first["function"], first["code"]) == (
        *("proj/train.py", 5),
        *(None, None),
    )
    assert table.notes == (
        "source not found: proj/train.py, x/train.py; --source DIR searches below DIR",
    )


def test_a_line_that_takes_nearly_all_has_the_lines_of_libraries_below_it() -> None:
    profile = fastprof.open(RECORDED / "traces" / "cv.json.gz")
    table = profile.lines()
    assert any(note.startswith("programs/cv.py:55 takes 92%") for note in table.notes)
    own = {row["frame"]: row["own_ns"] for row in table.rows()}
    inner = [ns for frame, ns in own.items() if "torchvision/models/resnet.py" in frame]
    below = next(row for row in table.rows() if row["frame"] == "programs/cv.py:55")
    assert len(inner) == 17 and sum(inner) + below["own_ns"] == below["gpu_ns"]
    assert sum(own.values()) == table.total["gpu_ns"]
    plain = profile.lines(files="cv.py")  # files of the user's choice: no others
    assert all("torchvision" not in row["frame"] for row in plain.rows())


def test_files_list_their_lines_own_or_not(opened: Any) -> None:
    profile = opened(net())
    table = profile.lines("lib/*.py")
    assert times(table) == {"site-packages/lib/ops.py:8": (40, 0, 0, 40, 40, 1)}
    assert table.total["gpu_ns"] == 40
    # The library's line is now a row, so that of the caller's own time is less.
    assert times(profile.lines(["ops.py", "proj"]))["proj/train.py:18"][4] == 0
    with pytest.raises(ReportError, match=r"unknown file 'trian\.py'; did you mean .*train\.py"):
        profile.lines("trian.py")
    with pytest.raises(ReportError, match="files: expected globs of files or folders"):
        profile.lines([""])


def test_mine_selects_the_lines(opened: Any) -> None:
    result = times(opened(net(), mine=["ops.py"]).lines())
    assert result == {
        "site-packages/lib/ops.py:8": (40, 0, 0, 40, 40, 1),
        "(no line)": (40, 100, 0, 140, 140, 5),
    }


def test_without_own_files_all_lines_are_shown(opened: Any) -> None:
    table = opened(Run().work(5, "site-packages/lib/ops.py:8")).lines()
    assert times(table) == {"site-packages/lib/ops.py:8": (5, 0, 0, 5, 5, 1)}
    assert "no lines of your own files: all lines are shown" in table.notes[0]


def test_source_files_give_functions_and_text(opened: Any, source: Path) -> None:
    table = opened(net()).lines(source=str(source))
    rows = {row["frame"]: row for row in table.rows()}
    assert rows["proj/train.py:5"]["function"] == "step"
    assert rows["proj/train.py:5"]["code"] == "    y = net(x)"
    assert rows["proj/train.py:13"]["function"] == "Net.forward"
    assert rows["proj/train.py:17"]["function"] is None
    titles = [line for line in table.text().splitlines() if line.endswith("%")]
    assert titles == [
        "proj/train.py   173 ns, 96.1 %",
        "proj/train.py:4 step   130 ns, 72.2 %",
        "proj/train.py:11 Net.forward   130 ns, 72.2 %",
        "x/train.py   20 ns, 11.1 %",
    ]


def test_listed_files_show_every_line_of_their_functions(opened: Any, source: Path) -> None:
    table = opened(net()).lines("proj/*", source=str(source))
    assert list(table["line"]) == [17, 18, *range(4, 8), *range(11, 15)]
    unused = [row for row in table.rows() if not row["kernels"]]
    assert [row["line"] for row in unused] == [4, 6, 7, 11, 12]
    assert all(row["gpu_ns"] == row["own_ns"] == 0 for row in unused)
    lines = table.text().splitlines()
    assert next(line for line in lines if line.startswith("    12")).split() == ["12", "if", "x:"]
    assert next(line for line in lines if line.startswith("    12")).endswith("      if x:")
    assert table.total["gpu_ns"] == 173


def test_function_selects_functions(opened: Any, source: Path) -> None:
    profile = opened(net())
    for name in ("forward", "Net.forward", "for*"):
        table = profile.lines(function=name, source=str(source))
        assert list(table["line"]) == [13, 14]
    with pytest.raises(ReportError, match="unknown function 'stop'; did you mean step"):
        profile.lines(function="stop", source=str(source))
    table = profile.lines(function="step")
    assert table.n_rows == 0 and table.notes[-1].startswith("functions unknown")


def test_by_function_has_own_and_cumulative_time(opened: Any, source: Path) -> None:
    table = opened(net()).lines(by="function", source=str(source))
    assert times(table) == {
        "proj/train.py": (73, 100, 0, 173, 43, 5),
        "proj/train.py:4 step": (30, 100, 0, 130, 0, 3),
        "proj/train.py:11 Net.forward": (30, 100, 0, 130, 110, 3),
        "x/train.py": (20, 0, 0, 20, 20, 1),
        "(no line)": (7, 0, 0, 7, 7, 1),
    }
    assert list(table["gpu_ns"]) == [173, 130, 130, 20, 7]
    assert table.text().startswith("function ")
    with pytest.raises(ReportError, match="by: expected line or function, found 'file'"):
        opened(net()).lines(by="file")


def test_stacks_of_functions_have_rows_of_functions(opened: Any, tmp_path: Path) -> None:
    trace = KinetoFile().python(0, 900, "train.py(62): <module>")
    trace.python(1, 800, "net.py(3): forward").python(2, 700, "net.py(3): forward")
    trace.op(3, 90, "aten::relu").launch(10, 20, 1).kernel(30, 40, 1)
    trace.op(100, 190, "aten::relu").launch(110, 120, 2).kernel(130, 145, 2)
    trace.python(810, 890, "net.py(9): forward")
    trace.op(811, 850, "aten::relu").launch(820, 830, 3).kernel(831, 834, 3)
    for by in ("line", "function"):
        table = opened(trace).lines(by=by)
        assert {frame: each[3:5] for frame, each in times(table).items()} == {
            "train.py:62 <module>": (28, 0),
            "net.py:3 forward": (25, 25),
            "net.py:9 forward": (3, 3),
        }
        assert "function" in table.text().splitlines()[0]
        assert "the trace records functions, not lines" in table.notes[0]
    assert "     3 forward" in opened(trace).lines().text()
    assert list(opened(trace).lines(function="<module>")["line"]) == [62]


def test_a_file_without_lines_has_one_row_and_advice(opened: Any) -> None:
    table = opened(Run().work(7)).lines()
    assert times(table) == {"(no line)": (7, 0, 0, 7, 7, 1)}
    assert table.notes[0].startswith("no source lines: call fastprof.init()")
    empty = opened(Run().launch(0, 1, 1, 1)).lines()
    assert empty.n_rows == 0 and empty.notes[0].startswith("no kernels")


def test_names_and_source_cannot_control_the_terminal(opened: Any, source: Path) -> None:
    (source / "a\x1b.py").write_bytes(b"x = '\x1b[31m\xff\x07'\n")
    table = opened(Run().work(1, "/p/a\x1b.py:1")).lines(source=str(source))
    assert table["code"][0] == "x = '\x1b[31m\ufffd\x07'"
    assert all(character.isprintable() for line in table.text().splitlines() for character in line)


def test_where_and_steps_apply(opened: Any) -> None:
    table = opened(net()).lines(where={"dir": "bprop"})
    assert times(table)["proj/train.py:14"] == (0, 100, 0, 100, 100, 1)
    assert table.total["gpu_ns"] == 100


def test_the_command_lists_files(tmp_path: Path, source: Path) -> None:
    path = net().write(tmp_path / "x.sqlite")
    done = run("lines", path, "proj/*", "--source", source, "-w", "80")
    assert done.returncode == 0 and b"y = net(x)" in done.stdout
    assert max(map(len, done.stdout.decode().splitlines())) <= 80
    done = run("lines", path, "--by", "file")
    assert done.returncode == 2 and b"expected line or function, found 'file'" in done.stderr
    done = run("lines", path, "nothing.py")
    assert done.returncode == 2 and b"unknown file 'nothing.py'" in done.stderr


# -- source files ---------------------------------------------------------------------------------


def test_the_longest_end_of_a_path_is_found(tmp_path: Path) -> None:
    for name in ("net.py", "pkg/net.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    files = SourceFiles(str(tmp_path))
    result = {path: files.find(path) for path in ("/home/me/pkg/net.py", "C:\\x\\net.py", "no.py")}
    assert [each and each.lines for each in result.values()] == [["pkg/net.py"], ["net.py"], None]
    assert files.missing == ["no.py"]


def test_a_recorded_path_that_exists_is_read(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text("x")
    result = SourceFiles(None).find(str(path))
    assert result is not None and result.lines == ["x"]


def test_only_python_files_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "src"
    folder.mkdir()
    (tmp_path / "outside.py").write_text("x")
    (folder / "secret.txt").write_text("x")
    os.mkfifo(folder / "pipe.py")
    (folder / "folder.py").mkdir()
    (folder / "large.py").write_bytes(b"\n" * (8 << 20) + b"x")
    files = SourceFiles(str(folder))
    for name in (
        "secret.txt",
        "pipe.py",
        "folder.py",
        "large.py",
        "x/../../outside.py",
        "a\0.py",
        "",
    ):
        assert files.find(name) is None, name


def test_lines_are_counted_as_python_does() -> None:
    source = SourceFile("a = 1\r\n\x0cdef f():\r    return 2\n")
    assert source.lines == ["a = 1", "\x0cdef f():", "    return 2"]
    assert (source.line(3), source.line(0), source.line(4), source.line(None)) == (
        *("    return 2", None),
        *(None, None),
    )
    result = source.function_at(3)
    assert result is not None and (result.name, result.first, result.last) == ("f", 2, 3)


def test_functions_begin_at_their_decorators_and_nest() -> None:
    source = SourceFile("@wrap\n@also\nasync def f():\n    class C:\n        def g(self): pass\n")
    assert source.functions == [("f", 1, 5), ("f.C.g", 5, 5)]
    assert [each and each.name for each in map(source.function_at, (1, 4, 5, 6))] == [
        *("f", "f"),
        *("f.C.g", None),
    ]


@pytest.mark.parametrize("text", ["def f(:\n", "\0", "(" * 5000, "x = '\\d'\n"])
def test_invalid_source_has_no_functions(text: str, recwarn: Any) -> None:
    assert SourceFile(text).functions == []
    assert not recwarn
