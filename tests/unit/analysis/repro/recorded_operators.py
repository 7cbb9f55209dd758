"""Recordings of torch's own operators by torch.profiler, with a kernel for each.

torch's database of operators calls them on the CPU; the profiler records their arguments. As no GPU
takes part, each outermost operator gets a launch and a kernel in the exported trace. The duration
of the kernel is the number of the operator.
"""

import json
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile, record_function

_FIRST = 100_000  # ns of the first kernel; later ones are shorter, and so lose less time
_RANGE = "operator case "
_SAMPLES = 3  # of which the largest is recorded


class Case(NamedTuple):
    """A call of a function of the database.

    Parameters
    ----------
    name : as the database names it: nn.functional.relu
    is_plain : the function is of torch, not of the database
    shapes : of the tensors that it returns
    """

    name: str
    is_plain: bool
    shapes: list[tuple[int, ...]]


class Operator(NamedTuple):
    """An outermost operator in a case. only : there is no other in it"""

    case: int
    name: str
    only: bool


def samples() -> Iterator[tuple[Any, Any]]:
    """The functions of the database that run on the CPU, and a sample of arguments for each."""
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo import core

    # For each sample, it would search the sources of the stack.
    core.extract_test_fn = common_utils.extract_test_fn = lambda: None
    for operator in op_db:
        types = operator.supported_dtypes("cpu")
        if types:
            dtype = torch.float32 if torch.float32 in types else min(types, key=str)
            torch.manual_seed(1)
            given = islice(operator.sample_inputs("cpu", dtype, requires_grad=False), _SAMPLES)
            yield operator, max(given, key=size, default=None)


def size(sample: Any) -> int:
    return sample.input.numel() if isinstance(sample.input, torch.Tensor) else 0


def shapes(value: Any) -> list[tuple[int, ...]]:
    if isinstance(value, torch.Tensor):
        return [tuple(value.shape)]
    return [s for item in value for s in shapes(item)] if isinstance(value, list | tuple) else []


def record(path: Path) -> list[Case]:
    """Record all functions in one run of the profiler; writes its trace."""
    cases = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = [(operator, sample) for operator, sample in samples() if sample is not None]
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
            for number, (operator, sample) in enumerate(given):
                with record_function(f"{_RANGE}{number}"):
                    try:
                        result = operator(sample.input, *sample.args, **sample.kwargs)
                    except (
                        AssertionError,
                        RuntimeError,
                    ):  # an operator that this build of torch lacks
                        result = None
                module = getattr(operator.op, "__module__", None) or "torch"
                is_plain = module.startswith("torch") and "testing" not in module
                cases.append(Case(operator.name, is_plain, shapes(result)))
        recorded.export_chrome_trace(str(path))
    return cases


def with_kernels(path: Path, parts: int) -> Iterator[tuple[Path, dict[int, Operator]]]:
    """The trace in parts, each with kernels for some cases; the operators by ns of their kernel."""
    trace = json.loads(path.read_text())
    spans = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    start = min(span["ts"] for span in spans)
    for span in spans:  # whole ns
        span["ts"], span["dur"] = (round(t, 3) for t in (span["ts"] - start, span["dur"]))
    operators = outermost(spans)
    step = -(-len(operators) // parts)
    for part in range(parts):
        told, number = {}, 0
        cases = operators[part * step : (part + 1) * step]
        first, last = (cases[end][1][end] for end in (0, -1))
        events = [s for s in spans if first["ts"] <= s["ts"] <= last["ts"] + last["dur"]]
        for case, inner in cases:
            for operator in inner:
                number += 1
                events += work_of(operator, number)
                told[_FIRST - number] = Operator(case, operator["name"], len(inner) == 1)
        new = path.with_name(f"part{part}.json")
        new.write_text(json.dumps({**trace, "traceEvents": events}))
        yield new, told


def outermost(spans: Sequence[dict[str, Any]]) -> list[tuple[int, list[dict[str, Any]]]]:
    """The outermost operators of each case that has any; "own" is where they run none inside."""
    key = "ts"
    cases = sorted((s for s in spans if s["name"].startswith(_RANGE)), key=lambda s: s[key])
    operators = sorted(
        (s for s in spans if s.get("cat") == "cpu_op"), key=lambda s: (s[key], -s["dur"])
    )
    result: list[tuple[int, list[dict[str, Any]]]] = []
    place, end = 0, -1.0
    for case in cases:
        inner = []
        while place < len(operators) and operators[place][key] < case[key] + case["dur"]:
            operator = operators[place]
            if operator[key] >= max(end, case[key]):
                end = round(operator[key] + operator["dur"], 3)
                following = operators[place + 1][key] if place + 1 < len(operators) else end
                inner.append({**operator, "own": min(following, end) - operator[key]})
            place += 1
        if inner:
            result.append((int(case["name"].removeprefix(_RANGE)), inner))
    return result


def work_of(operator: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """A launch at the start of an operator, before those inside it, and its kernel."""
    launch = {
        **{key: operator[key] for key in ("pid", "tid")},
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "ts": operator["ts"] + operator["own"] / 4,
        "dur": operator["own"] / 2,
        "args": {"correlation": number},
    }
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": f"kernel_{number}",
        "pid": 0,
        "tid": 7,
        "ts": operator["ts"] + 1e6 + number * 1e3,
        "dur": (_FIRST - number) / 1e3,
        "args": {"device": 0, "stream": 7, "correlation": number},
    }
    return [launch, kernel]
