"""`advise` on small captures: where each rule must fire, and where it must not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.analysis.advice import registry
from fastprof.analysis.advice.facts import Facts
from fastprof.errors import ReportError
from support.commands import run
from support.kineto_files import KinetoFile
from support.plans import claims

US = 1000
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
Rows = dict[str, dict[str, Any]]


class Steps(KinetoFile):
    """Five steps of 1000 us, of which the GPU computes for 600; times in us from their start."""

    N, LENGTH = 5, 1000

    def __init__(self, launch: float = 10) -> None:
        super().__init__()
        self._corr = 0
        self.each(lambda at: self.annotation(at, at + 999 * US, f"ProfilerStep#{at // 10**6 + 1}"))
        self.work(launch, 400, 1000)

    def each(self, add: Any) -> Steps:
        for step in range(self.N):
            add(step * self.LENGTH * US)
        return self

    def call(self, start: float, end: float, name: str) -> Steps:
        """An API call that launches nothing."""

        def add(at: int) -> None:
            self._corr += 1
            self.launch(at + round(start * US), at + round(end * US), self._corr, name=name)

        return self.each(add)

    def work(
        self, launch: float, start: float, end: float, name: str = "sgemm", **fields: Any
    ) -> Steps:
        """A kernel with its launch of 5 us."""

        def add(at: int) -> None:
            self._corr += 1
            begin = at + round(launch * US)
            self.launch(begin, begin + 5 * US, self._corr)
            times = at + round(start * US), at + round(end * US)
            if name.startswith("Mem"):
                self.copy(*times, self._corr, name, 4096)
            else:
                self.kernel(*times, self._corr, name, **fields)

        return self.each(add)

    def range(self, start: float, end: float, name: str) -> Steps:
        return self.each(
            lambda at: self.annotation(at + round(start * US), at + round(end * US), name)
        )


def opened(trace: KinetoFile, folder: Path) -> fastprof.Profile:
    return fastprof.open(trace.write(folder / "net.json"), copies=True)


def claimed(trace: KinetoFile, folder: Path) -> dict[str, float]:
    """What each rule claims, ns per step."""
    return claims(Facts(opened(trace, folder)))


def advice(trace: KinetoFile, folder: Path, **options: Any) -> Rows:
    table = opened(trace, folder).advise(**options)
    saved = sum(row["saving_ns"] or 0 for row in table.rows())
    assert saved <= table.facts["step_ns"]
    return {row["id"]: row for row in table.rows()}


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that a test registers are dropped after it."""
    monkeypatch.setattr(registry, "_rules", dict(registry.all_rules()))


# -- causes of idle time ---------------------------------------------------------------------------


def late() -> Steps:
    """The GPU is idle for 400 us a step: its work is launched 390 us after the step begins."""
    return Steps(launch=390)


def test_data_loading(tmp_path: Path) -> None:
    row = advice(late().range(10, 360, LOADER), tmp_path)["data-loading"]
    assert row["saving_ns"] == 350 * US
    assert row["share"] == pytest.approx(0.35)
    assert row["confidence"] == "high"
    assert "350 us idle per step" in row["evidence"]
    assert "num_workers" in row["remedy"]


def test_data_loading_by_worker_processes(tmp_path: Path) -> None:
    loader = LOADER.replace("SingleProcess", "MultiProcessing")
    row = advice(late().range(10, 360, loader), tmp_path)["data-loading"]
    assert "prefetch_factor" in row["remedy"]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("cudaFree", "expandable_segments"),
        ("cudaMalloc", "caching allocator"),
        ("cuModuleLoadData", "loaded at its first use"),
    ],
)
def test_allocation(name: str, remedy: str, tmp_path: Path) -> None:
    row = advice(late().call(10, 360, name), tmp_path)["alloc"]
    assert row["saving_ns"] == 350 * US
    assert remedy in row["remedy"]
    assert row["where"].startswith(f"{name} 100%")


def test_a_synchronisation_takes_the_idle_time_until_the_host_is_back(tmp_path: Path) -> None:
    trace = late().call(-100, 350, "cudaDeviceSynchronize")
    result = claimed(trace, tmp_path)
    assert result["sync"] == 390 * US
    assert "host-bound" not in result
    # The last step of the capture has no later one that the host could run ahead for.
    assert advice(trace, tmp_path)["sync"]["saving_ns"] == pytest.approx(390 * US, rel=0.01)


def test_the_host_is_slow_after_a_synchronisation(tmp_path: Path) -> None:
    trace = late().call(-100, 5, "cudaDeviceSynchronize")
    result = claimed(trace, tmp_path)
    assert result["sync"] == 55 * US
    assert result["host-bound"] == (335 - 50) * US
    rows = advice(trace, tmp_path)
    assert rows["host-bound"]["saving_ns"] <= result["host-bound"]
    # Without the wait, the host prepares the next launch before the GPU is done.
    assert 55 * US < rows["sync"]["saving_ns"] <= 105 * US


def test_item_waits(tmp_path: Path) -> None:
    trace = late()
    trace.each(lambda at: trace.op(at - 120 * US, at + 360 * US, "aten::_local_scalar_dense"))
    row = advice(trace.call(-100, 350, "cudaStreamSynchronize"), tmp_path)["sync"]
    assert ".item()" in row["remedy"]
    assert row["where"].startswith("_local_scalar_dense")


def test_python_between_launches(tmp_path: Path) -> None:
    trace = late()
    trace.each(lambda at: trace.op(at + 10 * US, at + 380 * US, "aten::slow"))
    result = advice(trace, tmp_path)
    # 50 us are those of one operator's launch.
    assert result["host-bound"]["saving_ns"] == pytest.approx((390 - 50) * US, rel=0.01)
    assert "slow" in result["host-bound"]["where"]
    assert not {"data-loading", "alloc", "sync"} & set(result)


def small_kernels(latency: float) -> Steps:
    """40 kernels of 5 us a step, launched every 25 us."""
    trace = late()
    trace.events = [event for event in trace.events if event["cat"] == "user_annotation"]
    for i in range(40):
        trace.work(25 * i, 25 * i + latency, 25 * i + latency + 5)
    return trace


def test_launches_slower_than_kernels(tmp_path: Path) -> None:
    assert claimed(small_kernels(8), tmp_path)["launch-bound"] == 800 * US
    row = advice(small_kernels(8), tmp_path)["launch-bound"]
    # The first kernel of the capture keeps its latency.
    assert 0.9 * 800 * US < row["saving_ns"] <= 800 * US
    assert "100.0% of the kernels start within 10 us" in row["evidence"]
    assert "the same 40 kernels" in row["evidence"]
    assert "make_graphed_callables" in row["remedy"]


def optimizer_steps() -> Steps:
    """20 kernels of 5 us, launched every 25 us; the optimizer's code runs for 480 us before one."""
    trace = small_kernels(8)
    trace.events = [event for event in trace.events if event["ts"] % 1000 < 500]
    trace.range(500, 998, "Optimizer.step#Adam.step")
    return trace.work(980, 988, 993)


def test_one_graph_replays_a_step_that_waits_for_nothing(tmp_path: Path) -> None:
    trace = optimizer_steps()
    finding = launch_bound(trace, tmp_path)
    assert "torch.cuda.graph of a whole step" in finding.remedy
    assert finding.idle_ns["host-bound"] == pytest.approx(505 * US, rel=0.05)
    assert "50 us of each, all of those in the optimizer" in finding.evidence
    trace.call(994, 996, "cudaDeviceSynchronize")
    finding = launch_bound(trace, tmp_path)
    assert "torch.cuda.graph" not in finding.remedy
    assert finding.idle_ns["host-bound"] == pytest.approx(50 * US, rel=0.05)


def test_the_part_of_a_gap_in_which_an_operator_is_launched_is_longer_as_recorded(
    tmp_path: Path,
) -> None:
    trace = optimizer_steps().call(994, 996, "cudaDeviceSynchronize")
    trace.root["fastprof_unrecorded"] = {"steps": 3, "median_ns": 550 * US}
    finding = launch_bound(trace, tmp_path)
    # Of 895 us of idle time, 445 remain.
    assert finding.idle_ns["host-bound"] == pytest.approx(50 * US * 895 / 445, rel=0.05)
    assert "(50 us without the recorder) of each" in finding.evidence


def launch_bound(trace: KinetoFile, tmp_path: Path) -> fastprof.Finding:
    """What the rule finds, before the plan."""
    facts = Facts(opened(trace, tmp_path))
    (finding,) = registry.all_rules()["launch-bound"].findings(facts)
    return finding


def test_queued_kernels_are_not_launch_bound(tmp_path: Path) -> None:
    trace = late()
    for i in range(10):
        trace.work(390 + i, 500 + 20 * i, 510 + 20 * i, stream=8)
    assert "launch-bound" not in advice(trace, tmp_path)


# -- communication and copies ----------------------------------------------------------------------


def test_exposed_communication(tmp_path: Path) -> None:
    trace = Steps().work(0, 0, 400, NCCL, stream=8)
    assert claimed(trace, tmp_path)["exposed-comm"] == 400 * US
    row = advice(trace, tmp_path)["exposed-comm"]
    assert 0 < row["saving_ns"] < 400 * US  # the host has own work of nearly a step
    assert "0% of 400 us is hidden" in row["evidence"]
    assert "bucket_cap_mb" in row["remedy"]
    same_stream = advice(Steps().work(0, 0, 400, NCCL, stream=7), tmp_path)["exposed-comm"]
    assert "process group" in same_stream["remedy"]


def test_hidden_communication_is_no_finding(tmp_path: Path) -> None:
    result = advice(Steps().work(20, 450, 900, NCCL, stream=8), tmp_path)
    assert not {"exposed-comm", "unbalanced-comm"} & set(result)


def test_communication_of_one_rank_cannot_be_compared(tmp_path: Path) -> None:
    table = opened(Steps().work(20, 0, 300, NCCL, stream=8), tmp_path).advise()
    assert "unbalanced-comm" in {each["id"] for each in table.facts["not_judged"]}
    assert "not judged: unbalanced-comm, because: the file contains one rank" in table.text()


def test_a_gpu_that_waits_for_another(tmp_path: Path) -> None:
    trace = Steps().work(15, 400, 1000, device=1)
    trace.work(20, 0, 300, NCCL, stream=8, device=0).work(25, 250, 300, NCCL, stream=8, device=1)
    row = advice(trace, tmp_path)["unbalanced-comm"]
    assert row["what"] == "GPU 0 waits for GPU 1 in communication."
    assert row["saving_ns"] is None


def test_exposed_copies(tmp_path: Path) -> None:
    pageable = Steps().work(0, 0, 400, "Memcpy HtoD (Pageable -> Device)", stream=8)
    assert claimed(pageable, tmp_path)["exposed-copy"] == 400 * US
    row = advice(pageable, tmp_path)
    assert "pin_memory=True" in row["exposed-copy"]["remedy"]
    pinned = Steps().work(0, 0, 400, "Memcpy HtoD (Pinned -> Device)", stream=8)
    pinned = advice(pinned, tmp_path)
    assert "pin_memory=True" not in pinned["exposed-copy"]["remedy"]
    assert "exposed-copy" not in advice(Steps().work(20, 0, 9, "Memcpy HtoD"), tmp_path)


def test_copies_within_the_gpu(tmp_path: Path) -> None:
    trace = Steps().work(0, 0, 400, "Memcpy DtoD (Device -> Device)")
    assert claimed(trace, tmp_path)["device-copy"] == 400 * US
    result = advice(trace, tmp_path)
    assert "device-copy" in result
    assert "exposed-copy" not in result


# -- phases, steps, memory -------------------------------------------------------------------------


def test_zero_grad_keeps_gradients_that_share_a_buffer(tmp_path: Path) -> None:
    trace = Steps().range(-1, 60, "Optimizer.zero_grad#SGD.zero_grad")
    trace.range(60, 70, "DistributedDataParallel.forward")
    assert "zero-grad" not in advice(trace.work(20, 100, 200, "fill"), tmp_path)


def test_no_second_torch_compile(tmp_path: Path) -> None:
    trace = Steps(launch=395)
    for at in range(20):
        trace.work(100 + at * 10, 103 + at * 10, 106 + at * 10, "triton_poi_fused_add_0")
    result = advice(trace, tmp_path)
    assert {"launch-bound", "host-bound"} <= set(result)
    assert not [row["id"] for row in result.values() if "torch.compile" in row["remedy"]]


def test_zero_grad(tmp_path: Path) -> None:
    trace = Steps().range(-1, 60, "Optimizer.zero_grad#SGD.zero_grad")
    row = advice(trace.work(20, 100, 200, "fill"), tmp_path)["zero-grad"]
    assert row["saving_ns"] >= 100 * US
    assert "set_to_none=True" in row["remedy"]
    assert "zero-grad" not in advice(Steps(), tmp_path)


def test_uneven_steps(tmp_path: Path) -> None:
    assert "uneven-steps" not in advice(Steps(), tmp_path)
    trace = KinetoFile()
    at = 0
    for i, length in enumerate((1000, 1000, 2000, 1000, 1000)):
        trace.annotation(at, at + length * US - 1, f"ProfilerStep#{i}")
        trace.launch(at + 10, at + 20, i + 1).kernel(at + 30, at + length * US, i + 1)
        at += length * US
    row = advice(trace, tmp_path)["uneven-steps"]
    assert row["what"].startswith("1 of 4 steps")
    assert row["where"] == "step 2"


def convolutions(benchmark: str) -> Steps:
    trace = Steps()
    values = ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1", benchmark, "False",
              "True", "True"]  # fmt: skip
    dims = [[8, 3, 9, 9], [4, 3, 3, 3], *([[]] * 11)]
    types = ["float", "float", *(["Scalar"] * 11)]
    trace.each(
        lambda at: trace.op(
            at + 18 * US, at + 30 * US, "aten::_convolution", dims=dims, types=types, values=values
        )
    )
    return trace.work(20, 0, 400, "cudnn_convolve_sgemm")


def test_convolutions_without_a_search(tmp_path: Path) -> None:
    assert "cudnn.benchmark" in advice(convolutions("False"), tmp_path)["cudnn-benchmark"]["remedy"]
    assert "cudnn-benchmark" not in advice(convolutions("True"), tmp_path)


# -- savings ---------------------------------------------------------------------------------------


def without_calls(trace: KinetoFile) -> KinetoFile:
    """The same capture without API calls, and so without steps."""
    trace.events = [event for event in trace.events if event.get("cat") == "kernel"]
    return trace


def test_bounds_count_the_time_of_two_findings_to_the_larger(tmp_path: Path) -> None:
    @fastprof.rule("tenth", least=0)
    def tenth(facts: Facts) -> Iterator[fastprof.Finding]:
        rows = facts.kernels(**{"class": "gemm"})
        yield fastprof.Finding("tenth", "do", kernels=rows, gpu_ns=facts.own_ns(rows) / 10)

    @fastprof.rule("most", least=0)
    def most(facts: Facts) -> Iterator[fastprof.Finding]:
        rows = facts.kernels(**{"class": "gemm"})
        idle = {"host-bound": 1e12}
        yield fastprof.Finding("most", "do", kernels=rows[:3], gpu_ns=1e12, idle_ns=idle)

    trace = without_calls(Steps().work(20, 0, 300, "sgemm", stream=8))
    profile = opened(trace, tmp_path)
    table, facts = profile.advise(), Facts(profile)
    result = {row["id"]: row for row in table.rows()}
    gemm = facts.kernels(**{"class": "gemm"})
    own, rest = facts.own_ns(gemm[:3]), facts.own_ns(gemm[3:])
    assert result["most"]["saving_ns"] == pytest.approx(own, abs=1)
    assert result["tenth"]["saving_ns"] == pytest.approx(rest / 10, abs=1)
    assert result["tenth"]["alone_ns"] == pytest.approx((own + rest) / 10, abs=1)
    assert result["most"]["is_bound"] == result["tenth"]["is_bound"] == 1
    lead = "\n".join(table.lead)
    assert "savings are bounds: the trace has no API calls to replay" in lead
    assert "(at most " in lead
    assert "would take at most " in table.facts["answer"]


def test_findings_below_min_are_not_listed(tmp_path: Path) -> None:
    trace = late().range(10, 360, LOADER)
    assert "data-loading" in advice(trace, tmp_path, min=34)
    assert "data-loading" not in advice(trace, tmp_path, min=36)


def test_fail_above(tmp_path: Path) -> None:
    path = late().range(10, 360, LOADER).write(tmp_path / "net.json")
    assert run("advise", path, "--fail-above", "36").returncode == 0
    failed = run("advise", path, "--fail-above", "34%", "--json")
    assert failed.returncode == 4
    result = json.loads(failed.stdout)
    assert result["failed"] is True
    assert result["step_ns"] == 1000 * US
    assert run("advise", path, "--min", "x").returncode == 2


# -- rules of users --------------------------------------------------------------------------------

USERS = """
import fastprof

@fastprof.rule("team-rule", least=0)
def team_rule(facts):
    yield fastprof.Finding(what="Ours.", remedy="do", where=f"{len(facts.profile)} kernels")

@fastprof.rule("team-doubt")
def team_doubt(facts):
    raise fastprof.CannotJudge("no team")
"""


def test_rules_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(USERS)
    path = Steps().write(tmp_path / "net.json")
    done = run("advise", path, "--ops", tmp_path / "rules.py", "--json")
    result = json.loads(done.stdout)
    assert "5 kernels" in [row["where"] for row in result["rows"] if row["id"] == "team-rule"]
    assert {"id": "team-doubt", "because": "no team"} in result["not_judged"]


def test_a_rule_replaces_the_built_in_one(tmp_path: Path) -> None:
    @fastprof.rule("data-loading")
    def none(facts: Facts) -> Iterator[fastprof.Finding]:
        return iter(())

    assert "data-loading" not in advice(late().range(10, 360, LOADER), tmp_path)


def test_ids_are_lower_case_words() -> None:
    with pytest.raises(ReportError, match="expected an id of lower-case words joined by -"):
        fastprof.rule("Two Words")


def test_an_unknown_confidence() -> None:
    with pytest.raises(ReportError, match="expected confidence high, medium, low; found 'sure'"):
        fastprof.Finding("x", "y", confidence="sure")


def test_a_capture_without_times_is_not_judged(tmp_path: Path) -> None:
    done = run("parse", Steps().write(tmp_path / "net.json"))
    (tmp_path / "net.dict").write_bytes(done.stdout)
    table = fastprof.open(tmp_path / "net.dict").advise()
    reasons = {each["id"]: each["because"] for each in table.facts["not_judged"]}
    assert reasons["data-loading"].startswith("dict lines contain no times")
    assert not {row["id"] for row in table.rows()} & set(reasons)
