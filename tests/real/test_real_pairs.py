"""Recordings of one program before and after a change: what the plan of BEFORE says of the change.

docs/replay.md says why the step itself differs from the prediction where it does.
"""

import gzip
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

import fastprof
from fastprof.api.diff import Diff
from real.open_traces import profile
from support.real_data import real


class Pair(NamedTuple):
    """before and after : traces

    ids : of findings that name the change; the first of the plan that does is first or second
    error : largest error of the prediction for all that is gone, a share of the change of the step
    """

    before: str
    after: str
    ids: tuple[str, ...]
    error: float
    steps: str | None = None


ANCHOR = "anchor:flash_fwd_kernel>5ms"
JANUARY, FEBRUARY = (
    f"kineto/resnet50_2021_{name}.json.gz" for name in ("01_loader0", "02_loader4")
)
JUNE, WORKERS = (f"kineto/resnet50_2021_{name}.json.gz" for name in ("stack_memory", "4workers"))
SLOW, FAST = (f"nsys/emit_nvtx_2gpu{name}_nsys2026.sqlite" for name in ("_after", ""))
EAGER, COMPILED = (f"kineto/train_v100_2022{name}.json.gz" for name in ("_control", ""))
MI300, H100 = (f"kineto/owlv2_{name}.json.gz" for name in ("mi300", "h100"))
LOADER = Pair(JANUARY, FEBRUARY, ("data-loading",), 0.2)
# With workers, each launch takes 1.24 times as long; what is gone is as long as predicted.
WITH_STACKS = Pair(JUNE, WORKERS, ("data-loading",), 0.35)
SLOWER_HOST = Pair(SLOW, FAST, ("launch-bound", "host-bound"), 0.2, ANCHOR)
ONE_GPU = [LOADER, WITH_STACKS, SLOWER_HOST]
TWO_GPUS = [
    Pair(EAGER, COMPILED, ("launch-bound", "host-bound"), 0.0),
    Pair(MI300, H100, ("data-loading",), 0.0),
]


def opened(path: str) -> fastprof.Profile:
    real(path)
    return profile(path, copies=True)


def compared(pair: Pair) -> Diff:
    before, after = ([opened(path)] for path in (pair.before, pair.after))
    return fastprof.diff(before, after, steps=pair.steps)


def plan(path: str, steps: str | None = None) -> list[tuple[str, int]]:
    """The findings that save time, in order, and what each saves, ns."""
    table = opened(path).advise(steps=steps)
    rows = [(row["id"], row["saving_ns"]) for row in table.rows()]
    return [(name, ns) for name, ns in rows if ns is not None and ns > 0]


@pytest.mark.parametrize("pair", [*ONE_GPU, *TWO_GPUS], ids=lambda pair: pair.before)
def test_the_change_is_named_first_or_second(pair: Pair) -> None:
    first = [name for name, _ in plan(pair.before, pair.steps)[:2]]
    assert set(first) & set(pair.ids)


@pytest.mark.parametrize("pair", ONE_GPU, ids=lambda pair: pair.before)
def test_what_is_gone_was_predicted(pair: Pair) -> None:
    predictions = compared(pair).predictions
    assert predictions is not None and not predictions.because
    assert {each.id for each in predictions.gone} & set(pair.ids)
    assert predictions.predicted_ns == pytest.approx(predictions.measured_ns, rel=pair.error)
    for each in predictions.gone:
        if each.id == "data-loading":
            assert each.predicted_ns == pytest.approx(each.own_ns, rel=0.05)


@pytest.mark.parametrize("pair", TWO_GPUS, ids=lambda pair: pair.before)
def test_steps_of_other_gpus_are_not_compared(pair: Pair) -> None:
    predictions = compared(pair).predictions
    assert (predictions.because, predictions.gone) == ("the GPUs differ", ())


def test_another_gpu_changes_no_program() -> None:
    """The same findings in the same order on both."""
    plans = [[name for name, _ in plan(path)] for path in (MI300, H100)]
    assert plans[0] == plans[1] == ["data-loading", "unfused-attention"]


@pytest.mark.parametrize(
    "pair, host",
    [(LOADER, 4728 / 7069), (WITH_STACKS, 11.77 / 9.524)],
    ids=["fewer operators", "longer launches"],
)
def test_the_rest_of_the_change_is_the_host(pair: Pair, host: float) -> None:
    """With the host of AFTER, the replay of BEFORE without loading is as long as AFTER.

    host : ratio of the operators that a step records, or of the length of a launch call
    """
    facts = opened(pair.before).whatif(no_data_loading=True, scale=f"host:{host:.3f}").facts
    measured = compared(pair).wall["after_ns"]
    assert facts["changes"][-1]["wall_ns"] == pytest.approx(measured, rel=0.1)


def events(path: str) -> list[dict[str, Any]]:
    with gzip.open(real(path)) as file:
        result = json.load(file)
    return [
        event
        for event in (result["traceEvents"] if isinstance(result, dict) else result)
        if event.get("ph") == "X"
    ]


def of_steps(path: str) -> Iterator[tuple[float, int]]:
    """Of each step, the time of its thread without loader and copies in us, and the operators."""
    every = events(path)
    waits = ("cudaMemcpyAsync", "cudaStreamSynchronize", "cudaDeviceSynchronize")
    for step in every:
        if not step["name"].startswith("ProfilerStep#") or step["cat"] != "Operator":
            continue
        own = [event for event in every if 0 <= event["ts"] - step["ts"] < step["dur"]]
        others = [each for each in own if "DataLoader" in each["name"] or each["name"] in waits]
        time = step["dur"] - sum(other["dur"] for other in others)
        yield time, sum(event["cat"] == "Operator" for event in own)


def test_january_records_more_operators_that_take_as_long_each() -> None:
    """Another PyTorch: what the loader does not explain of the change of the step."""
    before, after = ([*of_steps(path)] for path in (JANUARY, FEBRUARY))
    per_operator = [sum(t for t, _ in each) / sum(n for _, n in each) for each in (before, after)]
    assert per_operator[0] == pytest.approx(per_operator[1], rel=0.06)
    assert {n for _, n in before} == {7069}
    assert all(4700 < n < 4750 for _, n in after)


def test_seldom_waits_for_the_loader_count() -> None:
    """Half of 29 steps wait: at least the idle GPU within the loader is saved, at most its time."""
    path = "kineto/resnet_intermittent_loader.json.gz"
    ((name, saved), *_) = plan(path)
    every = sorted(events(path), key=lambda each: each["ts"])
    loads = [
        (event["ts"], event["ts"] + event["dur"])
        for event in every
        if "DataLoader" in event["name"]
    ]
    loads = sorted(set(loads))[1:]
    gpu = [event for event in every if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    ends = [0.0]
    for event in gpu:
        ends.append(max(ends[-1], event["ts"] + event["dur"]))
    gaps = [(end, each["ts"]) for end, each in zip(ends[1:], gpu[1:], strict=False)]
    idle = sum(
        max(min(end, until) - max(start, since), 0)
        for start, end in gaps
        if end - start > 1000
        for since, until in loads
    )
    n = len(loads)
    assert name == "data-loading"
    assert 0.99 * idle / n <= saved / 1000 <= sum(end - start for start, end in loads) / n
    assert all(a[1] <= b[0] for a, b in pairwise(loads))
