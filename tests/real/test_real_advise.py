"""`advise` of real traces: what fires where, what must not, and sums of savings."""

from typing import Any

import numpy as np
import pytest

from fastprof.analysis.host.states import SETUP
from fastprof.analysis.idle.causes import CAUSES
from real import open_traces
from real.open_traces import profile, report
from support.plans import claims
from support.real_data import traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*")
R50 = "kineto/resnet50_2021_stack_memory.json.gz"
R50_WORKERS = "kineto/resnet50_2021_4workers.json.gz"
MS = 1e6
Rows = dict[str, dict[str, Any]]


def advice(path: str) -> Rows:
    return {row["id"]: row for row in report(path, "advise").rows()}


@pytest.mark.parametrize("path", TRACES)
def test_claims_are_at_most_what_they_are_taken_from(path: str) -> None:
    opened = profile(path, copies=True)
    facts = open_traces.rule_facts(path)
    if not facts.has_times:
        return
    wall = facts.times["busy_ns"] + facts.times["idle_ns"]
    assert wall == pytest.approx(facts.step_ns)
    if len(opened.api):
        by_cause = {cause: facts.idle.mean(cause) for cause in CAUSES}
        assert sum(by_cause.values()) <= facts.times["idle_ns"] + 1
        from_idle = {
            "data-loading": ("data loading",),
            "alloc": tuple(CAUSES[state] for state in SETUP),
            "sync": ("sync", "blocking copy"),
            "launch-bound": ("launch-bound", "launch latency", "host-bound"),
            "host-bound": ("host-bound",),
        }
        claimed = claims(facts)
        for name in from_idle.keys() & claimed.keys():
            assert claimed[name] <= 1 + sum(by_cause[cause] for cause in from_idle[name])
        both = [claimed.get(name, 0.0) for name in ("launch-bound", "host-bound")]
        assert sum(both) <= 1 + sum(by_cause[cause] for cause in from_idle["launch-bound"])
    of_classes = facts.of_kernels[facts.kernels(**{"class": "communication"})].sum()
    assert of_classes <= facts.times["exposed_communication_ns"] + 1


@pytest.mark.parametrize("path", TRACES)
def test_own_time_of_kernels_is_the_busy_time(path: str) -> None:
    facts = open_traces.rule_facts(path)
    if facts.has_times:
        # A kernel that runs past the end of its step counts to the step in which it starts.
        assert facts.of_kernels.sum() == pytest.approx(facts.times["busy_ns"], rel=0.03)


# Where each rule fires, with the time that it claims, ms per step.
FIRES = {
    "data-loading": {R50: 56.7, "kineto/owlv2_h100.json.gz": 122.9},
    "alloc": {
        "kineto/resnet18_mi300_full.json.gz": 741.5,
        "kineto/particle_first_calls_a100.json.gz": 1339.5,
    },
    "sync": {"kineto/dlrm_rank0.json.gz": 0.488},
    "launch-bound": {R50: 12.55, "nsys/emit_nvtx_2gpu_after_nsys2026.sqlite": 37.03},
    "host-bound": {"nsys/emit_nvtx_2gpu_after_nsys2026.sqlite": 14.3, R50_WORKERS: 13.75},
    "exposed-comm": {"kineto/train_v100_2022.json.gz": 10.74},  # 11.81 less 1.07 of waits
    "device-copy": {"kineto/train_v100_2022.json.gz": 13.6},
    "exposed-copy": {R50_WORKERS: 3.07},
    "recompute": {"kineto/resnet_checkpoint_mi300.json.gz": 1.374},
    "uneven-steps": {"kineto/resnet_intermittent_loader.json.gz": None},
    "memory-headroom": {"kineto/owlv2_h100.json.gz": None},
    "unbalanced-comm": {"nsys/emit_nvtx_2gpu_after_nsys2026.sqlite": None},
}


@pytest.mark.parametrize(
    ("name", "path", "ms"),
    [(name, path, ms) for name, found in FIRES.items() for path, ms in found.items()],
)
def test_rules_fire(name: str, path: str, ms: float | None) -> None:
    claimed = claims(open_traces.rule_facts(path))
    assert claimed[name] == pytest.approx((ms or 0.0) * MS, rel=0.01)


def test_rules_do_not_fire() -> None:
    assert not {"data-loading", "alloc", "sync", "exposed-comm"} & set(advice(R50_WORKERS))
    assert not {"alloc", "sync", "exposed-comm", "uneven-steps", "recompute"} & set(advice(R50))
    before = advice("nsys/emit_nvtx_2gpu_nsys2026.sqlite")
    assert "launch-bound" not in before  # 8.8 % of its kernels are starved, 32.8 % after
    quiet = advice("kineto/resnet_v100_2024_fwdbwd.json.gz")
    assert not {*FIRES, "zero-grad"} & set(quiet)


def test_the_prediction_for_the_loader_against_the_same_program_with_four_workers() -> None:
    before, after = (open_traces.rule_facts(path) for path in (R50, R50_WORKERS))
    per_step = before.idle.time_by_window("data loading")
    assert np.median(per_step) == pytest.approx(57.0 * MS, abs=0.05 * MS)
    assert per_step.mean() == pytest.approx(56.74 * MS, abs=0.01 * MS)
    medians = [each.steps.median for each in (before, after)]
    gained = medians[0] - medians[1]
    assert gained == pytest.approx(48.99 * MS, abs=0.1 * MS)
    assert gained < np.median(per_step)  # an upper bound


def test_zero_grad_is_part_of_the_launches() -> None:
    assert claims(open_traces.rule_facts(R50))["zero-grad"] == pytest.approx(4.51 * MS, rel=0.01)
    assert {"launch-bound"} == {"launch-bound", "zero-grad"} & set(advice(R50))


def test_advice_names_the_call_and_the_line() -> None:
    assert advice("kineto/resnet18_mi300_full.json.gz")["alloc"]["where"].startswith("hipFree 100%")
    assert "_SingleProcessDataLoaderIter.__next__ 100%" in advice(R50)["data-loading"]["where"]
