"""`overlap` of real traces against sorted intervals in plain Python, and against figures of HTA."""

from typing import Any

import numpy as np
import pytest

from real.open_traces import events, profile
from real.raw_work import Work, union, work_of, work_of_events
from support.real_data import traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*")


def length(work: list[Work]) -> int:
    return union((each.start, each.end) for each in work)


def expected(work: list[Work]) -> dict[int, dict[str, int]]:
    result = {}
    for device in {each.device for each in work}:
        own = [each for each in work if each.device == device]
        of = {kind: [each for each in own if each.kind == kind] for kind in KINDS}
        both = length(of["compute"] + of["communication"])
        span = max(each.end for each in own) - min(each.start for each in own)
        result[device] = {
            "span_ns": span,
            "compute_ns": length(of["compute"]),
            "communication_ns": length(of["communication"]),
            "exposed_communication_ns": both - length(of["compute"]),
            "exposed_copy_ns": length(own) - both,
            "idle_ns": span - length(own),
        }
    return result


KINDS = ("compute", "communication", "copy")


@pytest.mark.parametrize("path", TRACES)
def test_time_lines_are_those_of_the_file(path: str) -> None:
    want = expected(work_of(path))
    table = profile(path, True).trim(":").overlap()
    result = {each["device"]: each for each in table.facts.get("gpus", [])}
    assert {key: {name: each[name] for name in want[key]} for key, each in result.items()} == want
    for each in result.values():
        parts = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
        assert each["span_ns"] == sum(each[name] for name in parts)
    for key in ("exposed_communication_ns", "communication_ns"):
        names = ("exposed_ns", "hidden_ns") if key == "communication_ns" else ("exposed_ns",)
        assert sum(table[name].sum() for name in names) == sum(each[key] for each in want.values())
    times = [each.end - each.start for each in work_of(path) if each.kind == "communication"]
    assert (table["time_ns"].sum(), table["kernels"].sum()) == (sum(times), len(times))
    for key in ("kernels", "time_ns", "exposed_ns", "hidden_ns", "calls"):
        assert table.total.get(key, 0) == table[key].sum()


BY = ("op,layer,line", "step,stream", "kernel", "collective,group_size,thread")


@pytest.mark.parametrize("path", TRACES)
def test_rows_add_up_under_any_grouping(path: str) -> None:
    whole = profile(path, True).overlap()
    for by in BY:
        table = profile(path, True).overlap(by=by.split(","))
        for key in ("kernels", "time_ns", "exposed_ns", "hidden_ns", "bytes", "in_bytes"):
            sums = [np.ma.filled(each[key], 0).sum() for each in (table, whole)]
            assert sums[0] == sums[1], (by, key)


def test_the_overlap_of_dlrm_is_that_of_hta() -> None:
    """HTA's figure for its own trace, of the eager run: 46.2 % of 163.5 ms."""
    (gpu,) = profile("kineto/train_v100_2022_control.json.gz", True).overlap().facts["gpus"]
    assert gpu["hidden_share"] == pytest.approx(0.4624, abs=5e-5)


def test_the_overlap_of_compiled_dlrm_counts_work_without_a_launch() -> None:
    """HTA prints 68.8 %; 69.1 % without the 614 rows whose launch was not recorded, 70.8 % with."""
    path = "kineto/train_v100_2022.json.gz"
    (gpu,) = profile(path, True).overlap().facts["gpus"]
    assert gpu["hidden_share"] == pytest.approx(0.7084, abs=5e-5)
    of_calls = {
        event["args"]["correlation"]
        for event in events(path)
        if event.get("cat") == "cuda_runtime" and "correlation" in event["args"]
    }
    launched = [
        event for event in events(path) if event.get("args", {}).get("correlation") in of_calls
    ]
    (device,) = expected(list(work_of_events(launched))).values()
    ms = [round(each / 1e6, 1) for each in device.values()]
    assert ms == [744.5, 514.6, 229.0, 70.8, 107.4, 51.7]
    share = 1 - device["exposed_communication_ns"] / device["communication_ns"]
    assert share == pytest.approx(0.6907, abs=5e-5)


SIZES = {"Float": 4, "Long": 8}


def test_messages_are_those_on_the_kernels() -> None:
    """Since 2023, torch.profiler repeats the record of a collective on its NCCL kernel."""
    path = "kineto/nccl_params.json.gz"
    want: dict[tuple[Any, ...], list[int]] = {}
    for event in events(path):
        args = event.get("args", {})
        if event.get("cat") == "kernel" and "Collective name" in args:
            size = args["In msg nelems"] * SIZES[args["dtype"]]
            name = {"allreduce": "all_reduce"}.get(args["Collective name"], "broadcast")
            want.setdefault((name, args["Group size"], size), []).append(int(event["dur"] * 1000))
    keys = ("collective", "group_size", "message_bytes")
    rows = list(profile(path, True).overlap(by=keys).rows())
    assert {tuple(row[key] for key in keys): row["time_ns"] for row in rows} == {
        key: sum(times) for key, times in want.items()
    }
    for row in rows:
        rate = 3 * row["message_bytes"] / row["time_ns"] * 1e9
        assert row["calls"] == 3
        # Of two ranks, an all-reduce has the same bus bandwidth: 2 (n - 1) / n = 1.
        for name in ("algorithm_bytes_per_s", "bus_bytes_per_s"):
            assert row[name] == pytest.approx(rate, rel=1e-12)


def test_bus_bandwidth_of_eight_ranks() -> None:
    rows = profile("kineto/resnet_checkpoint_mi300.json.gz", True).overlap().rows()
    of_message = {(row["collective"], row["message_bytes"]): row for row in rows}
    row = of_message["all_reduce", 8816192 * 2]  # bf16
    result = [row[key] for key in ("process_group", "group_size", "message_type")]
    assert result == ["0 default_pg", 8, "bf16"]
    rate = row["bus_bytes_per_s"] / row["algorithm_bytes_per_s"]
    assert rate == pytest.approx(2 * 7 / 8)


def test_ranks_follow_from_the_tensors_of_an_all_gather() -> None:
    rows = (
        profile("kineto/recommender_2023.json.gz", True)
        .overlap(by=["collective", "group_size"])
        .rows()
    )
    result = {row["collective"]: row["group_size"] for row in rows}
    assert result == {"all_gather": 64, "all_to_all": None, "all_reduce": None}


@pytest.mark.parametrize("path", traces("nsys/emit_nvtx_2gpu*.sqlite"))
def test_communication_on_the_stream_of_the_compute_is_not_hidden(path: str) -> None:
    table = profile(path, True).overlap()
    assert table.total["hidden_ns"] == 0
    notes = [note for note in table.notes if "cannot overlap" in note]
    assert [note.partition(" runs")[0] for note in notes] == [
        "GPU 0: 100% of the communication",
        "GPU 1: 100% of the communication",
    ]
