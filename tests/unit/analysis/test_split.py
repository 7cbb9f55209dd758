"""Reports of kernels that torch.compile generated: their work by source line, layer, operator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fastprof
from fastprof.analysis.parts import parts_of
from fastprof.api.profile import Profile
from fastprof.model.table import Table
from support.compiled_programs import BACKWARD, FOLDER, FORWARD, MODEL, graphs, write_trace


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    all_graphs = graphs()
    calls = [(all_graphs[FORWARD], True), (all_graphs[BACKWARD], True)] * 3
    times = (7, 11, 13, 5, 1, 3)
    return write_trace(tmp_path_factory.mktemp("compiled") / "t.json", calls, times)


@pytest.fixture(scope="module")
def whole(path: Path) -> Profile:
    return fastprof.open(path)


@pytest.fixture(scope="module")
def split(path: Path) -> Profile:
    return fastprof.open(path, compiled=FOLDER)


def column(table: Table, name: str) -> dict[str, int]:
    keys = table.columns[table.headings[0].key]
    values = table.columns[name]
    return {keys.at(row): values.at(row) for row in range(table.n_rows)}


@pytest.mark.parametrize("report", ["lines", "layers", "summary"])
def test_totals_are_those_of_kernels(whole: Profile, split: Profile, report: str) -> None:
    before, after = (profile.report(report).total for profile in (whole, split))
    for name in ("gpu_ns", "kernels", "flops", "bytes"):
        assert after.get(name) == before.get(name)


def test_lines_have_the_time_of_their_shares(split: Profile) -> None:
    table = split.lines()
    lines = {name.removeprefix(MODEL): ns for name, ns in column(table, "gpu_ns").items()}
    assert {":9", ":10", ":11", ":17", ":18"} <= lines.keys()
    own = column(table, "own_ns")
    assert sum(own.values()) == split.column("sil").values.sum()
    assert own[f"{MODEL}:17"] == 0  # a call of the blocks, which have it all


def test_operators_are_those_of_the_program(whole: Profile, split: Profile) -> None:
    before, after = (column(each.summary(by="op"), "gpu_ns") for each in (whole, split))
    assert {"gelu", "layer_norm", "mul", "add", "sum"} <= after.keys()
    assert sum(before.values()) == sum(after.values())
    assert after["addmm"] == before["addmm"]


def test_shares_of_a_number_sum_to_it(split: Profile) -> None:
    cells = parts_of(split)
    for name in ("sil", "flops", "bytes"):
        parts = np.asarray(cells.column(name).values)
        kernels = np.asarray(split.column(name).values)
        assert parts[parts >= 0].sum() == kernels[kernels >= 0].sum()


def test_conditions_select_parts(split: Profile) -> None:
    table = split.summary(by="line", where=["op=gelu"])
    assert all(name.endswith(":10") for name in column(table, "gpu_ns"))


def test_ideal_times_sum_to_those_of_kernels(whole: Profile, split: Profile) -> None:
    totals = [each.summary(gpu="H100 SXM").total.get("ideal_ns") for each in (whole, split)]
    assert totals[0] == pytest.approx(totals[1])


def test_a_note_says_what_is_shared(whole: Profile, split: Profile) -> None:
    assert any("torch.compile" in note for note in split.lines().notes)
    assert not any("torch.compile" in note for note in whole.lines().notes)


def test_other_reports_are_those_without_artefacts(whole: Profile, split: Profile) -> None:
    for report in ("roofline", "launches", "stats"):
        assert split.report(report).text() == whole.report(report).text()
