"""The page of a run: its texts, tables and charts against the run."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from bench.ranks import faults, programs, truth

from fastprof.page.run import heat, lanes, page_of_run
from fastprof.ranks.run.pictures import KINDS, WAIT, chain_slices, chosen_ranks, step_waits
from fastprof.ranks.run.result import RunData
from fastprof.ranks.run.waits import PARTS
from support.pages import Parsed, parsed, unpacked
from support.simulated_ranks import read

LATE = 2


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    """Four ranks, one of which loads data for 5 ms longer."""
    folder = tmp_path_factory.mktemp("run")
    truth.write(folder, programs.fsdp(4), 4, 1, [faults.Data(rank=LATE, ns=5_000_000)])
    return read(folder)


@pytest.fixture(scope="module")
def page(run: RunData) -> Parsed:
    return parsed(page_of_run(run, each={0: "ranks/rank 0.html", LATE: "ranks/rank2.html"}).html)


def test_the_answer_names_the_late_rank(page):
    assert f"Rank {LATE} holds the others up: data loading" in page.text
    assert f"Rank {LATE}: data loading" in page.text  # of the card


def test_links_lead_to_the_pages_of_ranks(page):
    links = [attribute["href"] for attribute in page.attributes("a")]
    assert "./ranks/rank%200.html" in links and "./ranks/rank2.html" in links
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    assert {link[1:] for link in links if link.startswith("#")} <= ids


def test_headings_are_in_order(page):
    levels = [int(tag[1]) for tag, _ in page.tags if tag in ("h1", "h2", "h3")]
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_slices_of_a_chain_fill_its_time(run):
    for rank, record in enumerate(run.records):
        slices = chain_slices(run, rank)
        assert (slices.end > slices.start).all()
        assert np.array_equal(slices.start[1:], slices.end[:-1])
        assert slices.end[-1] - slices.start[0] == record.chain.time[-1] - record.chain.begin
        ns = np.bincount(slices.kind, slices.end - slices.start, len(KINDS))
        assert ns[WAIT] == run.exposed[rank].wait.sum()
        assert ((slices.call >= 0) == (slices.kind >= WAIT)).all()


def test_waits_of_steps_are_those_of_the_table(run):
    waits = step_waits(run)
    for rank, times in enumerate(run.step_times):
        assert waits.wait[rank].tolist() == times.parts[:, PARTS.index("wait")].tolist()
    assert waits.waited_for.sum() == np.maximum(waits.wait, 0).sum()
    counted = waits.waited_for[:, waits.is_counted]
    assert (counted.argmax(axis=0) == LATE).all()
    others = [rank for rank in range(len(run)) if rank != LATE]
    assert (waits.last[others][:, waits.is_counted] == LATE).all()


def test_the_map_has_all_ranks_and_steps(run, page):
    data, arrays = unpacked(page.payloads["waits-chart-1"])
    assert data["rows"] == [f"rank {number}" for number in run.numbers]
    shape = len(run), len(data["steps"])
    assert np.array_equal(arrays["wait"].reshape(shape), step_waits(run).wait)
    assert set(arrays["last"].tolist()) <= {-1, *run.numbers}


def numbers(planes: np.ndarray, n: int) -> list[int]:
    return (planes.reshape(-1, n).astype(int) * 256 ** np.arange(len(planes) // n)[:, None]).sum(
        axis=0
    ).tolist()  # fmt: skip


def test_the_time_line_has_all_slices_and_calls(run, page):
    data, arrays = unpacked(page.payloads["time-line-chart-1"])
    chains = [lane for lane in data["lanes"] if lane["channel"] < 0]
    streams = [lane for lane in data["lanes"] if lane["channel"] >= 0]
    assert sum(lane["events"] for lane in streams) == len(run.instances.calls)
    n = sum(lane["events"] for lane in chains)
    result = {name: numbers(arrays[f"piece.{name}"], n) for name in ("kind", "length", "start")}
    begin, end = (data["steps"][i][name] for i, name in ((0, "start"), (-1, "end")))
    at = 0
    for rank, lane in enumerate(chains):
        slices = chain_slices(run, rank)
        own = slice(at, at + lane["events"])
        starts = np.cumsum(result["start"][own])
        ends = starts + result["length"][own]
        assert (ends > begin).all() and (starts < end).all()
        first = int(np.argmax(slices.end - slices.end[0] + ends[0] > begin))
        assert result["kind"][own] == slices.kind[first : first + lane["events"]].tolist()
        at += lane["events"]
    instances = numbers(arrays["instance.last"], data["n"][0])
    late = numbers(arrays["instance.late"], data["n"][0])
    assert instances[int(np.argmax(late))] == LATE + 1
    assert sum(step["isSlowest"] for step in data["steps"]) == 1


def test_large_runs_are_cut_with_a_note(run, monkeypatch):
    monkeypatch.setattr(heat, "_MOST_RANKS", 2)
    monkeypatch.setattr(heat, "_KEPT", 2)
    monkeypatch.setattr(lanes, "_MOST_RANKS", 2)
    monkeypatch.setattr(lanes, "_MOST_EVENTS", 60)
    trace = parsed(page_of_run(run).html)
    assert "The map has 2 of 4 ranks" in trace.text
    assert "The time line has 2 of 4 ranks" in trace.text
    data, arrays = unpacked(trace.payloads["waits-chart-1"])
    assert data["rows"][-1] == "median of 2" and f"rank {LATE}" in data["rows"]
    assert len(arrays["wait"]) == 3 * len(data["steps"])
    data, _ = unpacked(trace.payloads["time-line-chart-1"])
    assert LATE in data["ranks"].values() and len(data["steps"]) < len(step_waits(run).steps)


def test_chosen_ranks_contain_the_late_one(run):
    waits = step_waits(run)
    assert chosen_ranks(run, waits, 10) == [0, 1, 2, 3]
    assert LATE in chosen_ranks(run, waits, 2) and len(chosen_ranks(run, waits, 2)) == 2


def test_a_missing_rank_is_named(tmp_path: Path):
    truth.write(tmp_path, programs.ddp(3), 3, 1, [faults.Missing(rank=1)])
    trace = parsed(page_of_run(read(tmp_path)).html)
    assert "Missing: rank 1; waits for them are unknown." in trace.text


def test_one_rank_has_a_page(tmp_path: Path):
    truth.write(tmp_path, programs.ddp(2), 3, 1, [faults.Missing(rank=1)])
    assert "1 rank" in parsed(page_of_run(read(tmp_path)).html).text
