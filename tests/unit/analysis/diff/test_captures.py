"""How `fastprof.diff` opens and measures captures."""

from pathlib import Path
from threading import Event
from typing import Any

import pytest

import fastprof
from fastprof import ReportError
from fastprof.analysis.diff import captures
from fastprof.analysis.diff.captures import sides_of
from fastprof.errors import BadInputError
from support.training_files import call, nsys
from support.waiting import PATIENCE


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    work = [call("net:in", "relu", 20_000)]
    return [nsys(tmp_path / f"{name}.sqlite", [work] * 3) for name in "abc"]


def test_the_next_trace_is_opened_while_one_is_measured(files, monkeypatch):
    next_opened, measure = Event(), captures.side_of

    def opened(path: Any) -> fastprof.Profile:
        if path == files[1]:
            next_opened.set()
        return fastprof.open(path, copies=True)

    def measured(profile: fastprof.Profile, *options: Any) -> Any:
        assert next_opened.wait(PATIENCE)
        return measure(profile, *options)

    monkeypatch.setattr(captures, "side_of", measured)
    assert [side.names for side in sides_of(files, opened=opened)] == [(str(f),) for f in files]


def test_large_traces_are_opened_one_after_another(files, monkeypatch):
    events, measure = [], captures.side_of

    def opened(path: Any) -> fastprof.Profile:
        events.append(f"open {path.stem}")
        return fastprof.open(path, copies=True)

    def measured(profile: fastprof.Profile, *options: Any) -> Any:
        events.append(f"measure {Path(profile.name).stem}")
        return measure(profile, *options)

    monkeypatch.setattr(captures, "side_of", measured)
    monkeypatch.setenv("FASTPROF_MEMORY", str(2 * files[0].stat().st_size))
    sides_of(files[:2], opened=opened)
    assert events == ["open a", "measure a", "open b", "measure b"]


def test_the_error_of_the_first_capture_is_raised(files, tmp_path):
    with pytest.raises(ReportError, match="unknown key"):
        fastprof.diff(files[0], tmp_path / "missing", where="nosuch=1")
    with pytest.raises(BadInputError, match="no such file"):
        fastprof.diff(files[0], tmp_path / "missing")
