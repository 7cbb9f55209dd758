"""`memory` of traces: the peak, the blocks live at the peak, growth, categories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastprof
from fastprof.analysis.key_names import KEY_NAMES
from fastprof.analysis.memory.blocks import Blocks, MemoryEvents, blocks_of
from support import torch_server
from support.commands import run
from support.exports import PID, Export, global_tid
from support.kineto_files import KinetoFile

CPU_TABLES = Path(__file__).parents[3] / "support" / "cpu_tables.py"
ALLOCATIONS = ("at_peak_bytes", "at_peak_blocks", "allocated_bytes", "allocations", "at_end_bytes")


class Recorder:
    """A trace with allocations on GPU 0; `total` is the recorded total before the first."""

    def __init__(self, total: int | None = 0, with_addresses: bool = True) -> None:
        self.trace = KinetoFile()
        self._total, self._with_addresses = total, with_addresses

    def memory(self, time: int, size: int, address: int = 1, **args: Any) -> Recorder:
        """An allocation, or a free where the size is negative."""
        args = {"Device Type": 1, "Device Id": 0} | args
        if self._with_addresses:
            args["Addr"] = address
        if self._total is not None:
            self._total += size
            args |= {"Total Allocated": self._total, "Total Reserved": 2 * self._total}
        self.trace.memory(time, size, **args)
        return self

    def profile(self, folder: Path) -> fastprof.Profile:
        return fastprof.open(self.trace.write(folder / "trace.json"))


def by_key(table: Any, key: str, columns: tuple[str, ...] = ALLOCATIONS) -> dict[Any, Any]:
    return {row[key]: tuple(row[name] for name in columns) for row in table.rows()}


def facts(table: Any) -> dict[str, Any]:
    (result,) = table.facts["memories"]
    return result


def test_live_blocks_at_the_peak_belong_to_the_operator_that_allocates_them(tmp_path):
    recorder = Recorder()
    recorder.trace.op(0, 100, "aten::linear").op(10, 90, "aten::addmm").op(20, 30, "aten::empty")
    recorder.trace.op(200, 300, "aten::relu")
    recorder.memory(25, 100, 1).memory(50, 30, 2).memory(60, -30, 2)
    recorder.memory(250, 70, 3).memory(400, -70, 3)
    table = recorder.profile(tmp_path).memory()
    columns = (*ALLOCATIONS, "self_bytes", "total_bytes")
    assert by_key(table, "op", columns) == {
        "linear": (100, 1, 130, 2, 100, 0, 100),
        "relu": (70, 1, 70, 1, 0, 70, 70),
        "addmm": (0, 0, 0, 0, 0, 0, 100),
        "empty": (0, 0, 0, 0, 0, 100, 100),
        "[memory]": (0, 0, 0, 0, 0, -70, -70),
    }
    assert [row["op"] for row in table.rows()][:2] == ["linear", "relu"]
    assert table.total["at_peak_bytes"] == 170
    assert table["at_peak_share"][0] == 100 / 170
    result = facts(table)
    assert (result["start_bytes"], result["peak_bytes"], result["end_bytes"]) == (0, 170, 100)
    assert (result["peak_ns"], result["reserved_at_peak_bytes"]) == (250, 340)


def test_earlier_blocks_are_a_row_of_their_own(tmp_path):
    recorder = Recorder(total=1000).memory(10, 50, 1).memory(20, -300, 9).memory(30, 20, 2)
    table = recorder.profile(tmp_path).memory("size")
    assert by_key(table, "size") == {
        "(earlier)": (1000, None, 0, 0, 700),
        50: (50, 1, 50, 1, 50),
        20: (0, 0, 20, 1, 20),
    }
    assert facts(table)["peak_bytes"] == 1050
    assert facts(table)["peak_above_start_bytes"] == 50


def test_without_totals_only_freed_earlier_blocks_are_known(tmp_path):
    recorder = Recorder(total=None).memory(10, 50, 1).memory(20, -300, 9)
    table = recorder.profile(tmp_path).memory("device")
    assert by_key(table, "device") == {
        "(earlier)": (300, None, 0, 0, None),
        "GPU 0": (50, 1, 50, 1, 50),
    }
    assert facts(table)["start_bytes"] is None
    assert facts(table)["peak_bytes"] == 50
    assert any("not recorded" in note for note in table.notes)


def test_a_capture_that_only_frees_has_its_peak_at_the_start(tmp_path):
    table = Recorder(total=500).memory(10, -200, 1).memory(20, -300, 2).profile(tmp_path).memory()
    assert facts(table)["peak_bytes"] == 500
    assert facts(table)["peak_ns"] is None
    assert by_key(table, table.headings[0].key) == {"(earlier)": (500, None, 0, 0, 0)}


def blocks(sizes: list[int], addresses: list[int] | None = None, newest: bool = True) -> Blocks:
    n = len(sizes)
    unknown = np.full(n, -1, np.int64)
    address = unknown if addresses is None else np.array(addresses, np.int64)
    events = MemoryEvents(["GPU 0"], np.zeros(n, np.int32), np.arange(n), np.array(sizes, np.int64),
                    address, unknown, unknown, np.arange(n))  # fmt: skip
    return blocks_of(events, newest)


def spans(found: Blocks) -> set[tuple[int, int, int]]:
    return set(zip(found.begin.tolist(), found.end.tolist(), found.size.tolist(), strict=True))


def test_frees_match_allocations_by_address():
    result = blocks([8, 8, -8, 4, -8, -2], [1, 2, 1, 1, 2, 7])
    assert spans(result) == {(0, 2, 8), (1, 4, 8), (3, 6, 4), (-1, 5, 2)}
    assert not result.is_by_size


@pytest.mark.parametrize(
    ("newest", "expected"),
    [
        (True, {(-1, 0, 8), (1, 6, 8), (2, 4, 8), (5, 7, 8), (3, 8, 4)}),
        (False, {(-1, 0, 8), (1, 4, 8), (2, 6, 8), (5, 7, 8), (3, 8, 4)}),
    ],
)
def test_without_addresses_frees_match_allocations_of_their_size(newest, expected):
    sizes = [-8, 8, 8, 4, -8, 8, -8, -8]
    if newest:
        expected = {(-1, 0, 8), (2, 4, 8), (5, 6, 8), (1, 7, 8), (3, 8, 4)}
    result = blocks(sizes, newest=newest)
    assert result.is_by_size
    assert spans(result) == expected


def test_a_lost_free_ends_with_the_next_allocation_at_the_address(tmp_path):
    result = blocks([8, 16, -16], [1, 1, 1])
    assert spans(result) == {(0, 1, 8), (1, 2, 16)}
    assert result.lost_frees == 1
    (use,) = result.uses
    assert use.above.tolist() == [8, 16, 0]
    recorder = Recorder(total=None).memory(1, 8).memory(2, 16).memory(3, -16)
    assert any("1 blocks" in note for note in recorder.profile(tmp_path).memory().notes)


@pytest.mark.parametrize("newest", [True, False])
def test_blocks_are_those_of_a_plain_simulation(newest):
    random = np.random.default_rng(7)
    for _ in range(60):
        n = int(random.integers(1, 80))
        sizes = (random.integers(1, 4, n) * random.choice([1, 1, -1], n)).tolist()
        live: dict[int, list[int]] = {}
        expected = set()
        for i, size in enumerate(sizes):
            own = live.setdefault(abs(size), [])
            if size > 0:
                own.append(i)
            else:
                begin = own.pop(-1 if newest else 0) if own else -1
                expected.add((begin, i, -size))
        expected |= {(i, n, size) for size, own in live.items() for i in own}
        result = blocks(sizes, newest=newest)
        assert spans(result) == expected
        level, total = [], sum(size for begin, _, size in expected if begin < 0)
        for size in sizes:
            total += size
            level.append(total)
        start = sum(size for begin, _, size in expected if begin < 0)
        assert result.uses[0].above.tolist() == [each - start for each in level]


def training(recorder: Recorder, start: int, step: int, weights: int) -> None:
    """A step of 1000 ns; the gradient of the last one is freed by zero_grad."""
    trace, at = recorder.trace, start
    trace.annotation(at, at + 1000, f"ProfilerStep#{step}")
    trace.annotation(at + 10, at + 50, "Optimizer.zero_grad#SGD.zero_grad")
    if step:
        recorder.memory(at + 20, -64, weights + 10 * (step - 1))
        recorder.memory(at + 60, -16, 5)
    trace.op(at + 100, at + 120, "aten::to")
    recorder.memory(at + 110, 32, 2)
    trace.op(at + 200, at + 300, "aten::linear", seq=step + 1)
    recorder.memory(at + 210, 128, 3).memory(at + 220, 8, 4).memory(at + 230, -8, 4)
    trace.op(at + 310, at + 320, "aten::mse_loss", seq=step + 50)
    recorder.memory(at + 315, 16, 5)  # kept by a variable until the next step
    trace.op(at + 400, at + 600, "autograd::engine::evaluate_function: LinearBackward0", tid=2)
    recorder.memory(at + 410, 64, weights + 10 * step, tid=2)
    recorder.memory(at + 420, 4, 6, tid=2).memory(at + 430, -4, 6, tid=2)
    recorder.memory(at + 500, -128, 3, tid=2)
    trace.annotation(at + 700, at + 800, "Optimizer.step#SGD.step")
    if not step:
        recorder.memory(at + 710, 256, 7)
    recorder.memory(at + 720, 2, 8).memory(at + 730, -2, 8)
    recorder.memory(at + 900, -32, 2)


def test_categories_follow_the_phases_of_allocation_and_free(tmp_path):
    recorder = Recorder(total=1000)
    recorder.trace.op(0, 90, "aten::empty")
    recorder.memory(50, 512, 99)
    for step in range(3):
        training(recorder, 1000 * (step + 1), step, 100)
    recorder.trace.op(4000, 4100, "aten::linear")
    table = recorder.profile(tmp_path).memory("category")
    assert by_key(table, "category", ("allocated_bytes", "allocations")) == {
        "(earlier)": (0, 0),
        "parameters": (512, 1),
        "optimizer state": (256, 1),
        "gradients": (192, 3),
        "activations": (128 * 3 + 16 * 3, 6),
        "inputs": (96, 3),
        "temporary": (3 * (8 + 4 + 2), 9),
    }
    steps = facts(table)["steps"]
    assert steps["number"] == [0, 1, 2]
    assert steps["allocations"] == [8, 7, 7]
    assert steps["growth_bytes"] == 0


def test_blocks_that_outlive_their_step_are_kept(tmp_path):
    recorder = Recorder()
    for step in range(3):
        recorder.trace.annotation(100 * step, 100 * step + 90, f"ProfilerStep#{step}")
        recorder.trace.op(100 * step + 10, 100 * step + 80, "aten::mm")
        recorder.memory(100 * step + 20, 16, step + 1)
    table = recorder.profile(tmp_path).memory(["category", "step"])
    result = {(row["category"], row["step"]): row["at_end_bytes"] for row in table.rows()}
    assert result == {("kept", 0): 16, ("kept", 1): 16, ("unknown", 2): 16}
    assert facts(table)["steps"]["growth_bytes"] == 16
    assert any("grow by 16 B per step, in every step" in line for line in table.lead)


def test_keys_and_conditions_select_allocations(tmp_path):
    recorder = Recorder()
    recorder.trace.python(0, 200, "train.py(7): main").python(10, 90, "nn.Module: Linear_0")
    recorder.trace.op(20, 80, "aten::linear").op(100, 150, "aten::relu")
    recorder.memory(30, 100, 1).memory(110, 10, 2)
    profile = recorder.profile(tmp_path)
    assert by_key(profile.memory("layer"), "layer", ("at_peak_bytes",)) == {
        "Linear_0": (100,),
        None: (10,),
    }
    assert by_key(profile.memory("line"), "line", ("at_peak_bytes",)) == {"train.py:7 main": (110,)}
    table = profile.memory("op", where=["op=relu"])
    assert by_key(table, "op", ("at_peak_bytes", "allocations")) == {"relu": (10, 1)}
    assert facts(table)["peak_bytes"] == 110
    for key in KEY_NAMES:  # those that allocations do not have match nothing
        assert profile.memory("op", where=[f"{key}=no such value"]).n_rows == 0


def test_devices_are_selected_by_name(tmp_path):
    recorder = Recorder(total=None).memory(1, 8, 1).memory(2, 16, 2, **{"Device Id": 1})
    recorder.memory(3, 4, 3, **{"Device Type": 0, "Device Id": -1})
    profile = recorder.profile(tmp_path)
    cases = {None: {"GPU 0", "GPU 1"}, "gpu": {"GPU 0", "GPU 1"}, "1": {"GPU 1"}, "cpu": {"CPU"}}
    for device, expected in cases.items():
        assert set(by_key(profile.memory("device", device=device), "device")) == expected
    with pytest.raises(
        fastprof.ReportError, match=r"found '7'; the file records CPU, GPU 0, GPU 1"
    ):
        profile.memory(device="7")
    with pytest.raises(fastprof.ReportError, match="unknown key 'kernel'"):
        profile.memory("kernel")


def test_events_without_time_or_size_are_left_out(tmp_path):
    recorder = Recorder(total=None).memory(10, 8, 1).memory(20, 0, 2)
    recorder.trace.event("i", "cpu_instant_event", "[memory]", 30, pid=100, tid=1, args={})
    assert facts(recorder.profile(tmp_path).memory())["events"] == 1
    nothing = Recorder(total=None).memory(10, 0, 1).memory(20, 8, 2, **{"Device Type": 77})
    table = nothing.profile(tmp_path).memory()
    assert table.n_rows == 0
    assert "profile_memory=True" in table.notes[0]


def test_the_time_line_has_the_largest_live_bytes_of_each_interval(tmp_path):
    recorder = Recorder(total=100)
    for i in range(2000):
        recorder.memory(10 * i, 7 if i % 2 == 0 else -7, 1)
    line = facts(recorder.profile(tmp_path).memory())["timeline"]
    assert len(line["ns"]) == len(line["live_bytes"]) == 500
    assert set(line["live_bytes"]) == {107}
    assert line["ns"][0] == 0


def test_operators_have_the_memory_of_torchs_own_tables(tmp_path):
    torch_server.run(CPU_TABLES, tmp_path, check=True)
    theirs = json.loads((tmp_path / "shapes.tables.json").read_text())["by_op"]
    expected: dict[str, list[int]] = {}
    for row in theirs:
        name = row["name"].removeprefix("aten::")
        name = "step *" if name.startswith("step ") else name
        sums = expected.setdefault(name, [0, 0])
        sums[0] += row["self_memory"]
        sums[1] += row["memory"]
    table = fastprof.open(tmp_path / "shapes.json").memory()
    result = {
        row["op"]: [row["self_bytes"], row["total_bytes"]]
        for row in table.rows()
        if row["self_bytes"] or row["total_bytes"]
    }
    assert result == {name: sums for name, sums in expected.items() if any(sums)}
    assert len(result) > 10


@pytest.mark.parametrize("schema", ["2021", "2024", "2026"])
def test_allocations_of_cuda_are_read_from_exports(schema, tmp_path):
    export = Export().push_pop(0, 500, "load", tid=1).push_pop(600, 900, "train", tid=1)
    export.launch(5, 6, corr=1, tid=1).kernel(7, 9, corr=1)
    events = ((10, 1 << 20, 0, 2, 7), (20, 512, 0, 1, 8), (700, 2 << 20, 0, 2, 9),
              (800, 1 << 20, 1, 2, 7), (850, 64, 0, 4, 3))  # fmt: skip
    for corr, (time, size, operation, kind, address) in enumerate(events, 2):
        export.launch(time - 1, time + 1, corr=corr, tid=1, name="cudaMalloc")
        export.row(
            "CUDA_GPU_MEMORY_USAGE_EVENTS", start=time, globalPid=global_tid(PID, 0), deviceId=0,
            contextId=1, address=address, bytes=size, memKind=kind, memoryOperationType=operation,
            correlationId=corr,
        )  # fmt: skip
    profile = fastprof.open(export.write(tmp_path / "net.sqlite", schema=schema))
    table = profile.memory()
    assert by_key(table, "range", ("at_peak_bytes", "at_end_bytes", "allocations")) == {
        "train": (2 << 20, 2 << 20, 1),
        "load": (1 << 20, 0, 1),
    }
    assert any("segments of PyTorch's allocator" in note for note in table.notes)
    assert set(by_key(profile.memory("device", device="pinned"), "device")) == {"pinned"}
    assert set(by_key(profile.memory("device", device="managed"), "device")) == {"managed"}
    assert "self_bytes" not in table


def test_files_without_events_say_how_to_record_them(tmp_path):
    trace = KinetoFile().op(0, 10, "aten::mm").launch(1, 2, 1).kernel(3, 9, 1)
    path = trace.write(tmp_path / "net.json")
    done = run("memory", path)
    assert done.returncode == 0
    assert b"profile_memory=True" in done.stdout
    export = Export().launch(1, 2, 1, tid=1).kernel(3, 9, 1).write(tmp_path / "net.sqlite")
    assert b"--cuda-memory-usage=true" in run("memory", export).stdout
