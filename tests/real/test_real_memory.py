"""`memory` of real traces, against plain Python over the JSON."""

from typing import Any

import pytest

from oracle.kineto import nanoseconds
from real import open_traces
from support.real_data import traces

GPUS = (1, 6)
R50 = "kineto/resnet50_2021_stack_memory.json.gz"
OWL = "kineto/owlv2_h100.json.gz"


def events(path: str) -> list[dict[str, Any]]:
    """The memory events of GPUs in order of time, or of the CPU if there are none of GPUs."""
    result = [
        {"time": nanoseconds(event["ts"]), **event["args"]}
        for event in open_traces.events(path)
        if event.get("name") == "[memory]"
    ]
    of_gpus = [each for each in result if each["Device Type"] in GPUS]
    return sorted(of_gpus or result, key=lambda each: each["time"])


@pytest.mark.parametrize("path", traces("kineto/*.json.gz"))
def test_peak_end_and_rows_are_those_of_the_events(path: str) -> None:
    recorded = events(path)
    table = open_traces.profile(path, copies=True).memory()
    if not recorded:
        assert table.n_rows == 0
        assert "profile_memory=True" in table.notes[0]
        return
    (result,) = table.facts["memories"]
    level, peak, peak_time = 0, 0, None
    live: dict[int, int] = {}
    at_peak: dict[int, int] = {}
    for each in recorded:
        level += int(each["Bytes"])
        if each["Bytes"] > 0:
            live[each.get("Addr")] = each["Bytes"]
        else:
            live.pop(each.get("Addr"), None)
        if level > peak:
            peak, peak_time, at_peak = level, each["time"], dict(live)
    start = 0
    if "Total Allocated" in recorded[0]:
        start = recorded[0]["Total Allocated"] - recorded[0]["Bytes"]
        assert max(each["Total Allocated"] for each in recorded) == start + peak
        assert result["start_bytes"] == start
    assert (result["peak_above_start_bytes"], result["peak_ns"]) == (peak, peak_time)
    assert result["peak_bytes"] == start + peak
    assert result["end_bytes"] == start + level
    assert max(result["timeline"]["live_bytes"]) == start + peak
    allocations = [int(each["Bytes"]) for each in recorded if each["Bytes"] > 0]
    assert table.total["allocations"] == len(allocations)
    assert table.total["allocated_bytes"] == sum(allocations)
    assert sum(row["allocated_bytes"] for row in table.rows()) == sum(allocations)
    assert table.total["at_peak_bytes"] == start + peak + earlier_freed(recorded, peak_time)
    if "Addr" in recorded[0]:
        assert table.total["at_peak_bytes"] == start + sum(at_peak.values())
        assert table.total["at_peak_blocks"] == len(at_peak)
        assert table.total["at_end_bytes"] == start + sum(live.values())


def earlier_freed(recorded: list[dict[str, Any]], peak_time: int | None) -> int:
    """The bytes of earlier blocks that the capture frees, where totals are not recorded."""
    if "Total Allocated" in recorded[0]:
        return 0
    live: dict[int, int] = {}
    freed = 0
    for each in recorded:
        size = abs(each["Bytes"])
        live[size] = live.get(size, 0) + (1 if each["Bytes"] > 0 else -1)
        if live[size] < 0:
            live[size], freed = 0, freed + size
    return freed


def test_r50_has_the_known_figures() -> None:
    """685 allocations and 10.6 GB a step; peak 2791.6 MB above the start, equal in all steps."""
    table = open_traces.profile(R50).memory()
    (result,) = table.facts["memories"]
    assert round(result["peak_above_start_bytes"] / 1e6, 1) == 2791.6
    assert result["steps"]["number"] == [6, 7, 8, 9, 10]
    assert result["steps"]["allocations"] == [685] * 5
    assert {round(each / 1e9, 1) for each in result["steps"]["allocated_bytes"]} == {10.6}
    assert {round(each / 1e6, 1) for each in result["steps"]["peak_bytes"]} == {2791.6}
    assert result["steps"]["growth_bytes"] == 0


@pytest.mark.parametrize("path", traces("kineto/*.json.gz"))
@pytest.mark.parametrize("by", ["category", "layer", "line", "phase", "step", "thread", "size"])
def test_rows_by_any_key_have_the_same_totals(path: str, by: str) -> None:
    profile = open_traces.profile(path, copies=True)
    table, other = profile.memory("op"), profile.memory(by)
    names = ("at_peak_bytes", "allocated_bytes", "allocations", "at_end_bytes")
    if table.n_rows:
        assert {name: other.total[name] for name in names} == {
            name: table.total[name] for name in names
        }


def test_net_bytes_of_operators_sum_to_those_of_the_events() -> None:
    table = open_traces.profile(OWL, copies=True).memory(device="gpu")
    assert table.total["self_bytes"] == sum(int(event["Bytes"]) for event in events(OWL))


def test_results_that_a_program_keeps_are_a_growth_per_step() -> None:
    table = open_traces.profile(OWL, copies=True).memory(device="cpu", steps="repetition")
    (result,) = table.facts["memories"]
    assert result["steps"]["growth_bytes"] == 29_283_720
    assert any("in every step" in line for line in table.lead)
