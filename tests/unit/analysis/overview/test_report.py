"""`fastprof FILE`: one screen whose numbers are those of the reports."""

import json
import re
from html import escape

import numpy as np
import pytest
from bench.generate import generate

import fastprof
from fastprof.analysis.overview.report import Overview
from fastprof.model.terminal import Colours
from support.commands import one_line, run
from support.exports import Export
from support.kineto_files import KinetoFile

HOSTILE = "</pre><img src=x>\x1b"


@pytest.fixture(scope="module")
def found(profile: fastprof.Profile) -> Overview:
    table = profile.overview()
    assert isinstance(table, Overview)
    return table


def test_operators_and_lines_are_those_of_summary(found, profile):
    for name, by in (("ops", ("dir", "op")), ("lines", ("line",))):
        table = profile.summary(by=by).sort("step_ns")
        for column in ("gpu_ns", "step_ns", "share", "peak_share", "lost_ns", "kernels"):
            own, expected = found[name][column], table[column]
            np.testing.assert_array_equal(np.asarray(own), np.asarray(expected), err_msg=name)
    named = ["(no line)" if each is None else each for each in table["line"]]
    assert found["lines"]["line"].tolist() == named


def test_ranges_of_one_kernel_are_rows_of_their_own(tmp_path):
    """Where only ranges name the work, they are the first key: of each kernel, not of a cell."""
    export = Export()
    for i, name in enumerate(["compute", "compute fast", "compute", "compute fast"]):
        start, ns = 10_000 * i, 3_000 if name == "compute" else 1_000
        export.push_pop(start, start + 5_000, name, tid=1)
        export.launch(start + 10, start + 20, i + 1, tid=1)
        export.kernel(start + 30, start + 30 + ns, i + 1)
    result = fastprof.open(export.write(tmp_path / "ranges.sqlite")).overview()
    rows = {row["range"]: row["gpu_ns"] for row in result["ops"].rows()}
    assert rows == {"compute": 6_000, "compute fast": 2_000}


def test_layers_are_those_of_layers_folded(found, profile):
    expected = {
        row["layer"]: row["own_ns"] for row in profile.layers(fold=True).rows() if row["own_ns"]
    }
    assert {row["layer"]: row["gpu_ns"] for row in found["layers"].rows()} == expected
    assert len(expected) > 5


def test_findings_are_those_of_advise(found, profile):
    assert list(found["findings"].rows()) == list(profile.advise().rows())
    assert found["findings"].n_rows > 2


def test_causes_add_up_to_the_idle_time_of_the_mean_step(found):
    table = found["idle"]
    assert table.n_rows > 2
    assert sum(table["ns"].tolist()) == pytest.approx(table.total["ns"], abs=table.n_rows)
    assert table.total["ns"] == pytest.approx(found.facts["step_idle_ns"], abs=1)
    step = found.facts["step_ns"]
    np.testing.assert_allclose(table["share"], table["ns"] / step, atol=1e-6)


def test_a_file_without_a_command_is_one_screen(trace, found):
    done = run(trace)
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert done.stdout.decode() == found.text()
    assert len(lines) <= 46
    assert done.stdout.decode().split("\n\n")[0].split() == found.facts["answer"].split()
    assert all(len(line) <= 100 for line in lines if str(trace) not in line)
    for part in ("3 steps", "known of the GPU time: launch 99%", "all findings together save",
                 "record: ", "next: "):  # fmt: skip
        assert any(line.startswith(part) or part in line for line in lines), part


def test_the_proposed_commands_run(found, tmp_path):
    assert len(found.facts["next"]) == 4
    for command in found.facts["next"]:
        assert run(*command.split()[1:], cwd=tmp_path).returncode == 0, command


def test_a_narrow_terminal_gets_one_table_below_the_other(found):
    narrow = found.text(width=60)
    lines = narrow.split("known of ")[1].split("next: ")[0].splitlines()
    assert max(map(len, lines)) <= 60
    for head in ("dir    op", "idle  ", "layer  ", "line  "):
        assert any(line.startswith(head) for line in narrow.splitlines()), head


def test_limit_is_that_of_each_table(trace):
    lines = run(trace, "--limit", "1").stdout.decode().splitlines()
    assert sum(line.startswith("... 52 more rows") for line in lines) == 1
    assert any("fprop  linear" in line for line in lines) is False


def test_json_has_the_step_and_all_rows(trace, found):
    values = json.loads(run(trace, "--json").stdout)
    assert values["steps"]["count"] == 3
    assert values["step_ns"] == found.facts["step_ns"]
    assert {name: len(each["rows"]) for name, each in values["tables"].items()} == {
        name: each.n_rows for name, each in found.items()
    }


def test_one_sort_order_for_several_tables_is_an_error(trace):
    done = run(trace, "--sort", "op")
    assert done.returncode == 2
    assert b"expected a report with one table, found 5" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["overview", "folder"],
            "folder: is a directory; name a trace in it, or run fastprof ranks folder",
        ),
        (["absent.sqlite"], "absent.sqlite: no such file; check the path"),
        (["./absent"], "./absent: no such file; check the path"),
    ],
)
def test_a_path_that_is_no_trace_is_one_line(words, message, tmp_path):
    (tmp_path / "folder").mkdir()
    done = run(*words, cwd=tmp_path)
    assert one_line(done) == f"fastprof: {message}\n"


def test_an_option_may_come_first(trace):
    assert run("--json", trace).stdout == run(trace, "--json").stdout


def test_dict_lines_come_from_a_pipe(trace, tmp_path):
    lines = run("parse", trace).stdout
    done = run("/dev/stdin", stdin=lines)
    assert done.returncode == 0, done.stderr.decode()
    text = " ".join(done.stdout.decode().split())
    assert "/dev/stdin: dict lines" in text
    assert "idle: dict lines contain no times" in text


def test_a_capture_without_gpu_work_says_what_to_record(tmp_path):
    generate(tmp_path / "none.sqlite", 0, 1)
    text = fastprof.open(tmp_path / "none.sqlite").overview().text()
    assert "GPU work: no kernels: record with nsys profile" in text
    assert text.startswith("No kernels: record with nsys profile")
    assert "findings: no finding saves time" in text
    assert "fastprof info" in text


def test_a_profile_shows_its_answer(trace, found):
    profile = fastprof.open(trace)
    lines = repr(profile).splitlines()
    assert found.text().startswith("\n".join(lines[:-1]))
    assert lines[-1] == f"<fastprof.Profile of {trace}: {len(profile)} kernels>"
    html = profile._repr_html_()
    assert all(f"<div>{escape(line)}</div>" in html for line in found.lead)
    assert f"<b>{escape(found.facts['answer'])}</b>" in html
    boxes = re.findall(r"top:(\d+)px;left:([\d.]+)%;width:([\d.]+)%", html)
    tops = [(float(left), float(width)) for top, left, width in boxes if top == "0"]
    assert sum(width for _, width in tops) == pytest.approx(100, abs=3)
    assert all(left + width <= 100.01 for _, left, width in [map(float, box) for box in boxes])


def test_an_unreadable_answer_leaves_the_name(trace, monkeypatch):
    profile = fastprof.open(trace)

    def refuse(*_: object, **__: object) -> None:
        raise fastprof.StepsError("no steps")

    monkeypatch.setattr(fastprof.Profile, "overview", refuse)
    assert repr(profile) == f"<fastprof.Profile of {trace}: {len(profile)} kernels>"


@pytest.mark.parametrize("width", [80, 100, 120, 160, 200])
def test_the_screen_has_the_width_of_the_terminal(found, width):
    lines = found.text(width=width).splitlines()
    commands = lines.index(next(line for line in lines if line.startswith("next: ")))
    assert max(map(len, lines[:commands])) <= width
    assert ("lost(" in "\n".join(lines)) == (width >= 160)
    styled = found.text(width=width, colours=Colours(True))
    assert (
        re.sub(r"\x1b\[[\d;]*m|[█▏▎▍▌▋▊▉]", "", styled).split() == found.text(width=width).split()
    )


def test_names_cannot_control_the_terminal_or_the_page(tmp_path):
    capture = KinetoFile().annotation(0, 40, HOSTILE).launch(5, 6, 1).kernel(10, 30, 1, HOSTILE)
    profile = fastprof.open(capture.write(tmp_path / "x.json"), copies=True)
    table = profile.overview()
    assert "\x1b" not in table.text()
    for html in (table._repr_html_(), profile._repr_html_()):
        assert "<img" not in html
        assert "&lt;img" in html
