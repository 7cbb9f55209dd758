"""The recorder's own time in real traces of torch.profiler."""

import gzip
import json
from collections import Counter
from typing import Any

import pytest

from fastprof.analysis.recorder import recorder_lines, recorder_time
from fastprof.analysis.steps.windows import step_means
from real.open_traces import profile
from support.real_data import real, traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite")
HOST = {"launch-bound", "host-bound", "launch latency"}
# bench/recorder_cost.py: the least ns of an event, with shapes and stacks.
FUNCTION, OPERATOR, ANNOTATION = 150, 750, 400


@pytest.mark.parametrize("path", TRACES)
def test_traces_with_stacks_say_so(path):
    result = profile(path)
    lines = list(recorder_lines(result, result.find_steps()))
    if not path.endswith(".json.gz"):
        assert lines == []
        return
    raw = json_of(path)
    events = raw if isinstance(raw, list) else raw["traceEvents"]
    functions = any(event.get("cat") == "python_function" for event in events)
    # Traces of 2021 have the stack of an operator among its arguments.
    stacks = any(
        (event.get("args") or {}).get("Call stack") for event in events if event.get("ph") == "X"
    )
    assert any("recorded with call stacks" in line for line in lines) == (functions or stacks)


@pytest.mark.parametrize("path", TRACES)
def test_the_recorders_part_is_within_the_waits_and_the_events(path):
    result = profile(path)
    steps = result.find_steps()
    means = step_means(result, steps)
    if means is None or not len(result.api):
        pytest.skip("no GPU work, or no API calls")
    part = recorder_time(result, steps)
    if not path.endswith(".json.gz"):
        assert part is None
        return
    assert part is not None and not part.is_measured
    assert set(part.most) <= HOST
    for cause, least in part.least.items():
        assert 0 < least <= part.most[cause] <= 3 * least + 1
    assert sum(part.most.values()) <= means.idle + 1
    raw = json_of(path)
    events = raw if isinstance(raw, list) else raw["traceEvents"]
    n = Counter(str(event.get("cat")).lower() for event in events if event.get("ph") == "X")
    operators = n["cpu_op"] + n["operator"]
    others = n["user_annotation"] + n["python function"]
    every = OPERATOR * operators + FUNCTION * n["python_function"] + ANNOTATION * others
    assert sum(part.least.values()) * means.n_windows <= every * means.n_gpus


def json_of(path: str) -> Any:
    with gzip.open(real(path)) as file:
        return json.load(file)
