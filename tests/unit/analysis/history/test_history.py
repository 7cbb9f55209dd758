"""Histories of stored captures: tables, changes with what explains them, selections."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

import fastprof
from fastprof.analysis.diff import store
from fastprof.analysis.diff.captures import sides_of
from fastprof.analysis.diff.store import Baseline
from fastprof.analysis.history.columns import COLUMNS
from fastprof.errors import ReportError
from support.training_files import Work, call, kineto

N, AT = 20, 12


def steps(ns: int, seed: int) -> list[list[Work]]:
    noise = random.Random(seed)
    relu = int(20_000 * noise.uniform(0.99, 1.01))
    return [
        [call("net:in", "mm", int(ns * noise.uniform(0.99, 1.01))), call("net:out", "relu", relu)]
        for _ in range(5)
    ]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of captures whose mm is slower from one on."""
    folder = tmp_path_factory.mktemp("history")
    for i in range(N):
        path = kineto(folder / "net.json", steps(60_000 if i >= AT else 50_000, i))
        (side,) = sides_of([path])
        tags = {"commit": f"c{i}", "branch": "main" if i % 2 == 0 else "other"}
        memory = 8e9 if i < 5 else 9e9 + i
        store.save(Baseline(side), folder / "perf.sqlite", tags, [(0.4 + i % 3 / 100, memory)])
    return folder / "perf.sqlite"


def test_the_newest_capture_is_first(kept):
    table = fastprof.open_history(kept).table()
    assert table["capture"].tolist() == list(range(N, 0, -1))
    row = table[0]
    assert row["tags"] == "branch=other commit=c19" and row["version"] == fastprof.__version__
    assert row["step_ns"] == pytest.approx(row["busy_ns"] + row["idle_ns"])
    assert row["peak_bytes"] == 9e9 + 19 and row["steps"] == 4
    assert row["op:mm"] == pytest.approx(60_000, rel=0.01)
    assert row["layer:net:in"] == row["op:mm"]
    assert table.heading("op:mm").in_text is False
    assert {heading.key for heading in COLUMNS} <= table.columns.keys()


def test_a_change_is_told_with_what_made_it(kept):
    history = fastprof.open_history(kept)
    changes = {change.figure: change for change in history.changes()}
    assert changes.keys() == {"step", "busy", "memory"}
    step = changes["step"]
    assert (step.before.id, step.after.id) == (AT, AT + 1)
    assert step.new - step.old == pytest.approx(10_000, rel=0.1)
    label, ns = step.rows[0]
    assert label == "net:in mm" and ns == pytest.approx(10_000, rel=0.15)
    assert (changes["memory"].after.id, changes["memory"].rows) == (6, ())
    assert changes["memory"].share == pytest.approx(0.125, abs=0.001)
    lead = history.table().lead
    assert lead[2].startswith(f"from capture {AT + 1} (branch=main commit=c{AT}) on: step ")
    assert f"fastprof history {kept} --explain {AT + 1}" in lead[-2]
    marks = {row["capture"]: row["change"] for row in history.table() if row["change"]}
    assert marks.keys() == {6, AT + 1} and marks[6] == "memory +12.5%"


def test_figures_are_chosen_by_name(kept):
    history = fastprof.open_history(kept)
    assert [change.figure for change in history.changes(["op:mm"])] == ["op:mm"]
    assert history.figures(["ops"]) == ("op:mm", "op:relu")
    assert history.figures(["layers", "step"]) == ("layer:net:in", "layer:net:out", "step")
    table = history.table(["op:mm"])
    shown = [heading.key for heading in table.headings if heading.in_text]
    assert "op:mm" in shown and "step_ns" not in shown
    assert "mm(us)" in table.text()
    assert history.changes(threshold=0.2) == ()
    for name in ("stepp", "op:none"):
        with pytest.raises(ReportError, match="unknown figure"):
            history.table([name])


@pytest.mark.parametrize(
    "since, tags, ids",
    [
        (None, {"branch": "main"}, list(range(1, N + 1, 2))),
        ("commit=c17", None, [18, 19, 20]),
        ("commit=c16", {"branch": "other"}, [18, 20]),
        ("2020-01-01", None, list(range(1, N + 1))),
        ("2020-01-01T10:00:00+02:00", {"commit": "c3"}, [4]),
        ("2999-01-01", None, []),
    ],
)
def test_captures_are_selected_by_date_and_tags(kept, since, tags, ids):
    history = fastprof.open_history(kept, since, tags)
    assert [capture.id for capture in history.captures] == ids
    table = history.table()
    assert len(table) == len(ids)
    assert bool(ids) or "no capture fits" in table.notes


def test_wrong_dates_and_tags_are_errors(kept):
    with pytest.raises(ReportError, match="expected a date such as 2026-03-01 or a tag"):
        fastprof.open_history(kept, "yesterday")
    with pytest.raises(ReportError, match="no capture has the tag 'commit=x'"):
        fastprof.open_history(kept, "commit=x")


def test_two_stored_captures_are_compared(kept):
    history = fastprof.open_history(kept)
    difference = history.diff(1, N)
    assert difference.wall["verdict"] == "slower"
    assert difference.table("op")[0]["op"] == "mm"
    assert "<html" in difference.page().html


def test_captures_that_were_measured_otherwise_are_left_out(tmp_path):
    path = kineto(tmp_path / "net.json", steps(50_000, 0))
    history = fastprof.api.history.add_capture(tmp_path / "s.sqlite", path, {"a": "1"})
    assert history == (tmp_path / "s.sqlite", 1)
    result = fastprof.open_history(tmp_path / "s.sqlite").add(path, {"a": "2"}, steps="none")
    assert [capture.id for capture in result.captures] == [2]
    assert result.captures[0].figures.steps is None
    assert "left out: 1 captures measured with other --steps" in result.table().notes[0]
    assert "judged from 10 captures on, found 1" in result.table().notes[1]


def test_a_capture_may_be_a_profile_or_ranks(tmp_path):
    paths = [kineto(tmp_path / f"{i}.json", steps(50_000, i)) for i in range(2)]
    fastprof.api.history.add_capture(tmp_path / "s.sqlite", paths)
    fastprof.api.history.add_capture(tmp_path / "s.sqlite", fastprof.open(paths[0], copies=True))
    first, second = store.captures(tmp_path / "s.sqlite")
    assert first.names == (str(paths[0]), str(paths[1])) and second.names == (str(paths[0]),)


def test_mfu_and_memory_are_kept(tmp_path):
    from bench.generate import generate

    generate(tmp_path / "net.sqlite", 1000, seed=1)
    history = fastprof.api.history.add_capture(tmp_path / "s.sqlite", tmp_path / "net.sqlite")
    (result,) = store.captures(history[0])
    profile = fastprof.open(tmp_path / "net.sqlite", copies=True)
    expected = profile.overview().facts["utilisation"]["mfu"]
    assert result.figures.mfu == pytest.approx(expected)
    assert result.figures.step_ns == pytest.approx(profile.overview().facts["step_ns"], rel=1e-6)


def test_json_has_the_changes_in_raw_units(kept):
    result = json.loads(fastprof.open_history(kept).table().to_json())
    assert [change["figure"] for change in result["changes"]] == ["memory", "step", "busy"]
    assert result["changes"][1]["before"] == AT and result["changes"][1]["tags"]["commit"] == "c12"
    assert result["changes"][1]["rows"][0]["part"] == "net:in mm"
    assert len(result["rows"]) == N


def test_unknown_figures_are_unknown(kept, tmp_path):
    path = kineto(tmp_path / "net.json", steps(50_000, 0))
    fastprof.api.history.add_capture(tmp_path / "s.sqlite", path)
    history = fastprof.open_history(tmp_path / "s.sqlite")
    assert np.isnan(history.series("mfu")).all()
    assert history.figures() == ("step", "busy", "idle")
    assert history.table()[0]["mfu"] is None
