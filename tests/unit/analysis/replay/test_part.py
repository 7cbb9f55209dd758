"""The replay of some steps of a long run, against that of the whole run."""

from dataclasses import replace

import numpy as np
import pytest
from bench.generate import generate

import fastprof
from fastprof.analysis.advice import savings as replayed
from fastprof.analysis.replay import changes as host_changes
from fastprof.analysis.replay.graph import RunPart, part_of
from fastprof.analysis.replay.model import Model
from fastprof.api.open import open_trace
from support.training_files import Work, call, nsys

MOST = 60
WORK = [
    call("net:in", "mm", 50_000, "sgemm", ((8, 16), (16, 4))),
    call("net:in", "relu", 20_000),
    call("net:out", "mm", 40_000, "sgemm", ((8, 16), (16, 4))),
    call(None, "add_", 10_000),
]


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> fastprof.Profile:
    steps = [[replace(each, kernels=scaled(each, i)) for each in WORK] for i in range(100)]
    return open_trace(nsys(tmp_path_factory.mktemp("part") / "net.sqlite", steps), host=True)


def scaled(work: Work, step: int) -> tuple[tuple[str, int], ...]:
    """Kernels whose lengths differ from step to step."""
    return tuple((name, ns + 997 * (step % 7)) for name, ns in work.kernels)


@pytest.fixture(scope="module")
def part(profile: fastprof.Profile) -> RunPart:
    result = part_of(profile, profile.find_steps(), MOST)
    assert isinstance(result, RunPart)
    return result


def test_steps_of_several_processes_have_their_recorded_lengths(tmp_path):
    generate(tmp_path / "net.sqlite", 4000, n_processes=3)
    profile = open_trace(tmp_path / "net.sqlite", host=True)
    part = Model(profile, most=1)
    assert isinstance(part.profile, RunPart)
    assert len(set(part.steps.pid[part.rows].tolist())) == 3
    assert np.array_equal(part.run(part.base).wall, part.wall)


def test_steps_of_the_part_have_their_recorded_lengths(profile):
    whole, part = Model(profile), Model(profile, most=MOST)
    assert 5 <= len(part.rows) < len(whole.rows) / 3
    assert np.array_equal(part.run(part.base).wall, part.wall)
    lengths = {
        (int(whole.steps.pid[row]), int(whole.steps.number[row])): int(ns)
        for row, ns in zip(whole.rows, whole.wall, strict=True)
    }
    for row, ns in zip(part.rows, part.wall, strict=True):
        assert lengths[int(part.steps.pid[row]), int(part.steps.number[row])] == ns


def test_the_part_is_in_the_middle_and_about_as_large_as_asked(profile, part):
    steps = profile.find_steps()
    numbers = part.find_steps().number
    assert numbers.min() - steps.number.min() == pytest.approx(len(steps) / 2, abs=MOST / 4)
    assert abs(len(part) - MOST) <= 3 * len(profile) / len(steps)


def test_changes_save_about_as_much_as_in_the_whole_run(profile):
    saved = []
    for model in (Model(profile), Model(profile, most=MOST)):
        ideal = host_changes.host_scaled(model, model.base, 0.2)[0]
        wall = model.mean(model.run(model.base).wall)
        saved.append((wall - model.mean(model.run(ideal).wall)) / wall)
    assert saved[0] > 0
    assert saved[1] == pytest.approx(saved[0], rel=0.25)


def test_rows_of_the_part_have_the_columns_of_the_whole(profile, part):
    for name in ("start", "sil", "name", "layer", "op", "device", "stream", "pid"):
        column, whole = part.column(name), profile.column(name)
        rows = range(0, len(part), 37)
        assert [column.at(i) for i in rows] == [whole.at(int(part.rows[i])) for i in rows]
    calls, whole_calls = part.api, profile.api
    launch = calls.of_kernel
    known = np.flatnonzero(launch >= 0)
    assert len(known) > MOST / 2
    expected = whole_calls.start[whole_calls.of_kernel[part.rows[known]]]
    assert np.array_equal(calls.start[launch[known]], expected)


def test_kernels_outside_are_left_out(profile, part):
    rows = np.arange(len(profile))
    assert np.array_equal(part.rows[part.within(rows)], part.rows)
    outside = np.setdiff1d(rows, part.rows)
    assert len(part.within(outside)) == 0


def test_short_runs_and_runs_without_steps_are_whole(profile):
    assert part_of(profile, profile.find_steps(), len(profile)) is profile
    assert part_of(profile, profile.find_steps("none"), 1) is profile


def test_advise_names_the_steps_that_it_replays(profile, monkeypatch):
    whole = profile.report("advise")
    monkeypatch.setattr(replayed, "MOST", MOST)
    result = profile.report("advise")
    n = result.facts["replayed_steps"]
    assert 5 <= n < whole.facts["replayed_steps"] == len(Model(profile).rows)
    assert f"replayed on {n} of {len(profile.find_steps())} steps, #" in "\n".join(result.lead)
    assert "each saving is replayed, after " in "\n".join(whole.lead)
    assert result["id"].tolist() == whole["id"].tolist()
    assert result.facts["step_ns"] == whole.facts["step_ns"]
    together = [each.total["saving_ns"] for each in (whole, result)]
    assert together[1] == pytest.approx(together[0], rel=0.25)
