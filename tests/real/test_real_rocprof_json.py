"""Profiles of the real JSON of rocprofv3 agree with Python's json, record by record."""

import functools
import gzip
import json
from collections import Counter
from typing import Any

import pytest

from real.open_traces import profile, report
from support.real_data import real, traces

every_file = pytest.mark.parametrize("path", traces("rocpd/*.json.gz"))
Record = dict[str, Any]


@functools.cache
def processes(path: str) -> list[Record]:
    with gzip.open(real(path)) as file:
        result: list[Record] = json.load(file)["rocprofiler-sdk-tool"]
    return result


def records(path: str, table: str) -> list[tuple[Record, Record]]:
    """Each record with its process, in order of start."""
    pairs = [
        (process, record)
        for process in processes(path)
        for record in process["buffer_records"][table]
    ]
    return sorted(pairs, key=lambda pair: pair[1]["start_timestamp"])


def row_of(process: Record, record: Record) -> tuple[Any, ...]:
    """What the row of a dispatch must have."""
    info = record["dispatch_info"]
    (symbol,) = (s for s in process["kernel_symbols"] if s["kernel_id"] == info["kernel_id"])
    (agent,) = (a for a in process["agents"] if a["id"] == info["agent_id"])
    grid, block = info["grid_size"], info["workgroup_size"]
    return (
        record["start_timestamp"],
        record["end_timestamp"] - record["start_timestamp"],
        symbol["formatted_kernel_name"],
        record["correlation_id"]["internal"],
        record["stream_id"]["handle"],
        agent["logical_node_type_id"],
        process["metadata"]["pid"],
        tuple(-(-grid[axis] // block[axis]) for axis in "xyz"),
        tuple(block[axis] for axis in "xyz"),
        info["group_segment_size"],
        symbol["arch_vgpr_count"] + symbol["accum_vgpr_count"],
    )


COLUMNS = (
    *("start", "sil", "name", "correlation", "stream", "device", "pid"),
    *("grid", "block", "shared_memory", "registers"),
)


@every_file
def test_every_dispatch_has_one_row_with_its_facts(path: str) -> None:
    truth = [row_of(*pair) for pair in records(path, "kernel_dispatch")[::23]]
    result = [tuple(row[key] for key in COLUMNS) for row in profile(path).rows()]
    assert len(result) == len(records(path, "kernel_dispatch"))
    assert result[::23] == truth


@every_file
def test_sums_by_name_agree(path: str) -> None:
    names = {s["kernel_id"]: s["formatted_kernel_name"]
             for process in processes(path) for s in process["kernel_symbols"]}  # fmt: skip
    time: Counter[str] = Counter()
    for _, record in records(path, "kernel_dispatch"):
        name = names[record["dispatch_info"]["kernel_id"]]
        time[name] += record["end_timestamp"] - record["start_timestamp"]
    table = report(path, "stats")["cuda_gpu_kern_sum"]
    assert {row["Name"]: row["Total Time (ns)"] for row in table.rows()} == time


@every_file
def test_busy_time_is_the_union_of_the_dispatches(path: str) -> None:
    busy = end = 0
    for _, record in records(path, "kernel_dispatch"):
        busy += max(0, record["end_timestamp"] - max(end, record["start_timestamp"]))
        end = max(end, record["end_timestamp"])
    assert report(path, "overview").facts["busy_ns"] == busy


@every_file
def test_calls_ranges_copies_and_launches_are_those_of_the_file(path: str) -> None:
    counted = {name: len(records(path, name)) for name in ("hip_api", "hsa_api", "memory_copy")}
    trace = profile(path, copies=True)
    assert len(trace.api) == counted["hip_api"] + counted["hsa_api"]
    assert sum(kind == "memcpy" for kind in trace.kernels["kind"]) == counted["memory_copy"]
    calls = {record["correlation_id"]["internal"] for _, record in records(path, "hip_api")}
    launched = [each is not None for each in trace.kernels["launch"]]
    assert launched == [each in calls for each in trace.kernels["correlation"].tolist()]
    names = [name for process in processes(path) for name in process["strings"]["marker_api"]]
    assert (len(trace.ranges) > 0) == (len(names) > 0)


@every_file
def test_the_gpu_and_its_peaks_are_known(path: str) -> None:
    trace = profile(path)
    assert set(trace.about.gpus.values()) == {
        agent["product_name"]
        for process in processes(path)
        for agent in process["agents"]
        if agent["type"] == 2
    }
    devices = trace.devices.values()
    assert {device.flops["half"] for device in devices} == {2310e12}
    assert {device.bandwidth for device in devices} == {8000e9}
