"""What is known of one kernel, in lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastprof.analysis.kernel.waited import LAUNCH, OTHER, STREAM
from fastprof.model.numbers import quantity

_LONGEST: Final = 200  # characters of a name or shape


def lines_of(facts: Mapping[str, Any], reasons: Mapping[str, str]) -> list[str]:
    """The facts of a kernel as lines.

    facts, reasons : those of `explained`
    """
    return [
        *_what(facts),
        *_where(facts),
        *_cost(facts),
        *_launch(facts),
        *_waited(facts),
        *(f"{name} unknown: {reason}" for name, reason in reasons.items()),
    ]


def _what(facts: Mapping[str, Any]) -> Iterator[str]:
    same = facts["same_name"]
    yield f"{facts['idx']}: {_cut(facts['name'])}"
    at = "" if facts["at_ns"] is None else f" at {quantity(facts['at_ns'], 'ns')}"
    place = f"device {facts['device']}, stream {facts['stream']}"
    length = "na" if facts["gpu_ns"] is None else quantity(facts["gpu_ns"], "ns")
    yield f"{facts['kind']}, {length}{at}, {place}, step {_text(facts['step'])}"
    yield (
        f"{same['place']} of {same['kernels']} of this name: median "
        f"{quantity(same['median_ns'], 'ns')}, {quantity(same['min_ns'], 'ns')} to "
        f"{quantity(same['max_ns'], 'ns')}; {same['longer']} take longer"
    )
    if facts["kind"] in ("memcpy", "memset"):
        rate = facts["bytes_per_s"]
        yield (
            f"{_text(facts['copied_bytes'])} bytes, {_text(facts['direction'])}, "
            f"{_text(facts['memory'])}, {'na' if rate is None else quantity(rate, 'bytes/s')}"
        )
    elif facts.get("grid") is not None:
        yield (
            f"grid {_sizes(facts['grid'])}, block {_sizes(facts['block'])}, registers "
            f"{_text(facts.get('registers'))}, shared memory {_text(facts.get('shared_memory'))} "
            f"bytes, {_text(facts['compute_type'])}, tensor cores {_text(facts['tc'])}"
        )
    if facts.get("triton") is not None:
        yield f"Triton: {_cut(facts['triton'])}"


def _where(facts: Mapping[str, Any]) -> Iterator[str]:
    call = facts["call"]
    op = f"operator {_text(facts['op'])}, {_text(facts['dir'])}, phase {_text(facts['phase'])}"
    if call is not None:
        op += (
            f"; kernel {call['place']} of {call['kernels']} of its call, which takes "
            f"{quantity(call['gpu_ns'], 'ns')}"
        )
    yield op
    for name in ("shape", "layer", "line", "range"):
        if facts[name] is not None:
            yield f"{name} {_cut(facts[name])}"


def _cost(facts: Mapping[str, Any]) -> Iterator[str]:
    cost = facts["cost"]
    if cost["flops"] is None and cost["bytes"] is None:
        return
    parts = [
        quantity(cost[name], unit)
        for name, unit in (("flops", "flop"), ("bytes", "bytes"), ("flop_per_s", "flop/s"))
        if cost[name] is not None
    ]
    if cost["ideal_ns"] is not None and cost["roof_share"] is not None:
        parts.append(
            f"ideal {quantity(cost['ideal_ns'], 'ns')}, {cost['roof_share']:.1%} of the roof, "
            f"bound by {cost['bound']}"
        )
    yield f"cost {', '.join(parts)}"


def _launch(facts: Mapping[str, Any]) -> Iterator[str]:
    launch = facts["launch"]
    if launch is None:
        return
    parts = [f"launched by {launch['call']} at {quantity(launch['at_ns'], 'ns')}"]
    if launch["host_ns"] is not None:
        parts.append(f"which takes {quantity(launch['host_ns'], 'ns')}")
    if launch["to_start_ns"] is not None:
        parts.append(f"{quantity(launch['to_start_ns'], 'ns')} before it starts")
    yield ", ".join(parts)


def _waited(facts: Mapping[str, Any]) -> Iterator[str]:
    waited = facts["waited"]
    if waited is None:
        return
    of = f" {waited['idx']}" if waited["idx"] is not None else ""
    text = {
        STREAM: f"waited for its stream: for kernel{of}, which ends before it",
        LAUNCH: "waited for its launch: it starts as soon as it is launched",
        OTHER: "waited neither for its launch nor its stream: an event, or a free GPU"
        + (f"; kernel{of} on another stream ends just before" if of else ""),
    }.get(waited["for"], "what it waited for is unknown: its launch is not recorded")
    yield text
    if waited["gpu_idle_ns"] and waited["cause"] is not None:
        where = [
            f"{name.removeprefix('idle_')} {value}"
            for name, value in waited.items()
            if name.startswith("idle_") and value is not None
        ]
        yield (
            f"the GPU was idle for {quantity(waited['gpu_idle_ns'], 'ns')} before it: "
            f"{waited['cause']}" + (f" ({', '.join(where)})" if where else "")
        )


def _cut(value: Any) -> str:
    """The beginning of a long text."""
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _text(value: Any) -> str:
    return "na" if value is None else str(value)


def _sizes(value: Any) -> str:
    return "na" if value is None else "x".join(map(str, value))
