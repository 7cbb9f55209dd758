"""Time torch calls, plain and annotated in several ways, in one process; write JSON to stdout.

Contenders take turns, round after round; the minimum of each counts. The stack below the calls is
about twenty functions deep, as in a training script with modules.
"""

from __future__ import annotations

import json
import operator
import sys
import timeit
from collections.abc import Callable
from typing import Any

import nvtx
import torch
import torch.nn.functional as F

import fastprof
from bench.pyprof_way import pyprof_way
from fastprof._core import _hooks

DEPTH = 20
CALLS_A_ROUND = 4000
X, WEIGHT, BIAS = torch.randn(8, 16), torch.randn(4, 16), torch.randn(4)
# One call of each kind: owner and name of its function, and the call. None runs another of these.
CALLS: dict[str, tuple[Any, str, Callable[[], Any]]] = {
    "F.linear(x, w, b)": (F, "linear", lambda: F.linear(X, WEIGHT, BIAS)),
    "torch.relu(x)": (torch, "relu", lambda: torch.relu(X)),
    "torch.sum(x, dim=1)": (torch, "sum", lambda: torch.sum(X, dim=1)),
    "x.add(1.5)": (torch.Tensor, "add", lambda: X.add(1.5)),
    "x + x": (torch.Tensor, "__add__", lambda: operator.add(X, X)),
}


def passes_on(owner: Any, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The smallest wrapper in Python."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def timed(call: Callable[[], Any]) -> float:
    return timeit.timeit(call, number=CALLS_A_ROUND) / CALLS_A_ROUND


def wrapped_by(
    wrapper: Callable[..., Any], owner: Any, name: str, call: Callable[[], Any]
) -> float:
    """Seconds per call with the function replaced, as PyProf does it."""
    function = getattr(owner, name)
    own = name in vars(owner)
    setattr(owner, name, wrapper(owner, name, function))
    try:
        return timed(call)
    finally:
        if own:
            setattr(owner, name, function)
        else:
            delattr(owner, name)


def annotated(call: Callable[[], Any], functions: bool = False, on: bool = True) -> float:
    """Seconds per call; with `on` false as in `fastprof run` before and after a recording."""
    with fastprof.init(enable_function_stack=functions):
        _hooks.annotate(on)
        return timed(call)


def contenders(attached: bool) -> dict[str, Callable[[Any, str, Callable[[], Any]], float]]:
    result: dict[str, Callable[[Any, str, Callable[[], Any]], float]] = {
        "plain": lambda owner, name, call: timed(call),
        "passes on": lambda *place: wrapped_by(passes_on, *place),
        "fastprof": lambda owner, name, call: annotated(call),
        "not recording": lambda owner, name, call: annotated(call, on=False),
    }
    if attached:
        result["with functions"] = lambda owner, name, call: annotated(call, functions=True)
        result["as PyProf"] = lambda *place: wrapped_by(pyprof_way, *place)
    return result


def deep(depth: int, call: Callable[[], Any]) -> Any:
    return call() if depth == 0 else deep(depth - 1, call)


def main() -> None:
    torch.set_num_threads(1)
    rounds = int(sys.argv[1])
    running = contenders(attached=type(nvtx.get_domain()).__name__ != "DummyDomain")
    seconds: dict[str, dict[str, float]] = {
        call: dict.fromkeys(running, float("inf")) for call in CALLS
    }
    for _ in range(rounds):
        for called, place in CALLS.items():
            for name, time in running.items():
                taken = deep(DEPTH, lambda time=time, place=place: time(*place))
                seconds[called][name] = min(seconds[called][name], taken)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
