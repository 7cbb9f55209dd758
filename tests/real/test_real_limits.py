"""No call of a real trace exceeds the peaks of its GPU, except for named reasons."""

import re
from collections import defaultdict
from dataclasses import dataclass, field

import pytest

from fastprof.model.devices import Device, resolve
from fastprof.model.metadata import About
from fastprof.profile.lookups import MOST
from real.open_traces import kept, profile, rows
from real.profiled import Row
from support.real_data import traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*")
every_trace = pytest.mark.parametrize("path", TRACES)

MICROSECOND = 1000  # ns
# Files that do not name the GPU; in all others, the name must resolve.
NAMELESS = {
    "kineto/recommender_2023.json.gz",
    "kineto/resnet50_2021_01_loader0.json.gz",
    "kineto/resnet50_2021_02_loader4.json.gz",
    "nsys/emit_nvtx_2gpu_after_nsys2026.sqlite",
    "nsys/emit_nvtx_2gpu_nsys2026.sqlite",
    "nsys/fsdp_upload_2gpu_h100.sqlite",
}
# A name that stands for many GPUs (the driver knew no better): no figures can be given.
UNTOLD = {"kineto/toy_mi250.json.gz": "AMD Radeon Graphics"}
TYPE = re.compile(r"(fp64|fp32|fp16|bf16|fp8|int8)(?![0-9])")


@dataclass
class Call:
    """The kernels of one call instance."""

    rows: list[Row] = field(default_factory=list)

    def total(self, column: str) -> int:
        return sum(max(0, getattr(row, column)) for row in self.rows)

    def longest(self) -> int:
        """Upper bound of the kernels' time in ns: a clock in us is off by up to one for each."""
        durations = [row.duration for row in self.rows]
        rough = all(duration % MICROSECOND == 0 for duration in durations)
        return sum(durations) + rough * MICROSECOND * len(durations)


def about(path: str) -> About:
    return profile(path).about


@kept
def device(path: str, number: int) -> Device:
    told = about(path)
    return resolve(told.gpus.get(number), told.gpu_figures.get(number))


@kept
def calls(path: str) -> list[Call]:
    result: dict[object, Call] = defaultdict(Call)
    for row in rows(path):
        result[row.call if row.call >= 0 else row.key].rows.append(row)
    return list(result.values())


def most_flops(call: Call, gpu: Device) -> float | None:
    """Peak FLOP/s of the GPU, with tensor cores if the call's kernels may use them."""
    types = {each for row in call.rows for each in TYPE.findall(row.params)}
    uses = any(row.tc == "1" or row.tc is None for row in call.rows)
    # 16-bit types without tensor cores: 2 or 4 per instruction, never more than with them.
    peaks = [gpu.peak(each, tensor_cores=uses or each not in ("fp32", "fp64")) for each in types]
    known = [peak for peak in [*peaks, gpu.flops.get("fp32")] if peak]
    return max(known, default=None)


@every_trace
def test_every_gpu_with_kernels_resolves_or_says_why(path: str) -> None:
    told = about(path)
    used = {row.device for row in rows(path)}
    for number in used:
        result = device(path, number)
        if path in NAMELESS:
            assert number not in told.gpus
            assert "does not name the GPU" in result.why
        elif path in UNTOLD:
            assert told.gpus[number] == UNTOLD[path]
            assert f"the GPU table has no '{UNTOLD[path]}'" in result.why
        else:
            assert result.why == ""
            assert result.bandwidth and result.flops


@every_trace
def test_no_call_computes_more_than_its_gpu_can(path: str) -> None:
    """Winograd convolutions do fewer operations than the formula counts."""
    beyond = []
    for call in calls(path):
        most = most_flops(call, device(path, call.rows[0].device))
        winograd = any("winograd" in row.name.lower() for row in call.rows)
        if most and not winograd and call.total("flops") > most * call.longest() * 1e-9:
            beyond.append((call.rows[0].op, call.rows[0].params, call.total("flops"),
                           call.longest(), call.rows[0].name[:60]))  # fmt: skip
    assert beyond == []


@every_trace
def test_what_the_memory_cannot_have_moved_is_flagged(path: str) -> None:
    for call in calls(path):
        moved, time = call.total("bytes"), call.total("duration")
        bandwidth = device(path, call.rows[0].device).bandwidth
        if bandwidth and time and moved > MOST * bandwidth * time * 1e-9:
            unflagged = [row for row in call.rows if row.bytes >= 0 and row.exact == 1]
            assert unflagged == []
