"""Format the summary of a file for a terminal: one screen of 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from fastprof.model.heading import printable
from fastprof.model.metadata import FORMATS
from fastprof.profile.captured_graphs import outcome

WIDTH = 100
_LEAST = 20  # characters of a text beside its label
_LABEL = 14
_SHARE = 25
_MAX_NAMES = 4
_WORK = {
    "kernel": "kernels",
    "graph": "CUDA graphs",
    "memcpy": "memory copies",
    "memset": "memsets",
}
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))


def info_text(info: dict[str, Any], width: int | None = None) -> str:
    """Format the result of `describe`; only the file name may exceed the width, by default 100."""
    width = width or WIDTH
    lines = [info["file"], ""]
    for label, value in _lines(info):
        lines += _wrapped(label, value, _LABEL, width)
    if info["coverage"] and info["gpu_time"]:
        lines += ["", f"known share of GPU kernel time ({_time(info['gpu_time'])})"]
    advice = dict(info["advice"])
    for each in info["coverage"] if info["gpu_time"] else ():
        depth = each["depth"]
        head = f"{depth:<12}{100 * each['share']:>7.1f} %"
        lines += _wrapped(head, "\n".join(advice.pop(depth, [])), _SHARE, width)
    if advice:
        lines.append("")
    for label, texts in advice.items():
        lines += _wrapped(label, "\n".join(texts), _LABEL, width)
    return "".join(printable(line).rstrip() + "\n" for line in lines)


def _format(info: dict[str, Any]) -> str:
    parts = [
        f"version {info['tool_version']}" if info["tool_version"] else "",
        f"schema {info['schema_version']}" if info["schema_version"] else "",
        *(f"{name.replace('_', ' ')} {value}" for name, value in info["versions"].items()),
    ]
    return ", ".join([FORMATS.get(info["format"], info["format"]), *filter(None, parts)])


def _lines(info: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Label and text of each line; lines with an empty text are not printed."""
    yield "format", _format(info)
    yield "read", _read_by(info["read_by"])
    yield "program", _program(info["program"])
    yield "GPUs", _gpus(info["gpus"])
    rank = info["rank"]
    if rank is not None:
        size = "" if rank["world_size"] is None else f" of {rank['world_size']}"
        number = "unknown" if rank["rank"] is None else rank["rank"]
        yield "rank", f"{number}{size}" + (f", {rank['backend']}" if rank["backend"] else "")
    processes = [
        f"{process['pid']}{' ' + process['name'] if process['name'] else ''}"
        for process in info["processes"] or ()
    ]
    yield "processes", _listed(processes)
    names = _listed(
        list(dict.fromkeys(thread_name["name"] for thread_name in info["thread_names"]))
    )
    yield "threads", f"{info['threads']}" + (f": {names}" if names else "")
    if info["span"] is not None:
        span = info["span"]["end"] - info["span"]["start"]
        yield "span", f"{_time(span)} from the first start to the last end of GPU work"
    yield "steps", _steps(info["steps"])
    yield "recorder", _recorder(info["unrecorded"], info["steps"])
    yield "diagnostics", "; ".join(info["diagnostics"])
    work = [
        f"{each['count']} {_WORK.get(kind, kind)} ({_time(each['time'])})"
        for kind, each in info["work"].items()
    ]
    yield "GPU work", ", ".join(work) or "none"
    if info["launches"] is not None:
        lost = info["lost_launches"]
        more = f", and {lost} of kernels that are not in the file" if lost else ""
        if truncated := info["truncated_stacks"]:
            more += f"; {truncated} lack the callers of their Python functions"
        yield "launches", f"{info['launches']}{more}"
    if info["ranges"] is not None:
        ranges = info["ranges"]
        kinds = ", ".join(f"{n} {kind}" for kind, n in ranges.items())
        more = f"; {info['open_ranges']} open at the end" if info["open_ranges"] else ""
        if empty := info["ranges_without_work"]:
            more += f"; {empty} of yours launch work, of which the file has none"
        yield "ranges", f"{sum(ranges.values())}" + (f": {kinds}" if kinds else "") + more
    if info["graph_capture"] is not None:
        yield "graphs", outcome(**info["graph_capture"])
    if info["memory_events"]:
        yield "memory", f"{info['memory_events']} allocations and frees"
    for label, there in (("has", True), ("has no", False)):
        contained = [name.replace("_", " ") for name, has in info["has"].items() if has == there]
        yield label, ", ".join(contained)


def _program(program: dict[str, str | None]) -> str:
    """What kind of program, and what tells it; "" if unknown."""
    name, evidence = program["name"], program["evidence"]
    return f"{name}: {evidence}" if name else ""


def _read_by(tables: dict[str, dict[str, Any]]) -> str:
    """Which tables were read from the file's pages, and which through SQLite and why."""
    by_sqlite: dict[str, list[str]] = {}
    for table, mapping in tables.items():
        if mapping["way"] == "sqlite":
            by_sqlite.setdefault(mapping["why"], []).append(table)
    n = len(tables) - sum(map(len, by_sqlite.values()))
    parts = [f"{n} table{'s' * (n != 1)} from the file's pages"] if n else []
    parts += [f"{_listed(names)} through SQLite: {why}" for why, names in by_sqlite.items()]
    return "; ".join(parts)


def _gpus(gpus: Sequence[dict[str, Any]]) -> str:
    """The devices with work, grouped by name, and the number of idle devices."""
    names: dict[str, list[str]] = {}
    for gpu in gpus:
        if gpu["rows"]:
            names.setdefault(gpu["name"] or "unknown model", []).append(str(gpu["device"]))
    used = [f"{', '.join(devices)}: {name}" for name, devices in names.items()]
    idle = [gpu["name"] or "unknown model" for gpu in gpus if not gpu["rows"]]
    if idle:
        used.append(f"{len(idle)} idle: {_listed(list(dict.fromkeys(idle)))}")
    return "; ".join(used) or "none recorded"


def _steps(steps: Sequence[dict[str, Any]]) -> str:
    if not steps:
        return ""
    numbers = [step["number"] for step in steps]
    lengths = [step["end"] - step["start"] for step in steps if step["end"] is not None]
    text = f"{len(steps)}: ProfilerStep#{min(numbers)}"
    text += f" to #{max(numbers)}" if max(numbers) > min(numbers) else ""
    if not lengths:
        return text
    mean = _time(sum(lengths) / len(lengths))
    if len(lengths) == 1:
        return f"{text}, {mean}"
    return f"{text}, {_time(min(lengths))} to {_time(max(lengths))}, {mean} on average"


def _recorder(unrecorded: dict[str, Any] | None, steps: Sequence[dict[str, Any]]) -> str:
    """By how much recording stretched a step; "" if the steps before it are unknown."""
    if unrecorded is None:
        return ""
    n, before = unrecorded["steps"], unrecorded["median_ns"]
    text = f"a step took {_time(before)} before the recording (median of {n})"
    after = unrecorded.get("after")
    later = after and f", {_time(after['median_ns'])} after it (median of {after['steps']})"
    lengths = [step["end"] - step["start"] for step in steps if step["end"] is not None]
    if not lengths:
        return f"{text}{later or ''}"
    during = median(lengths)
    times = f": {during / before:.1f} times as long" if before else ""
    return f"{text}, {_time(during)} in it (median of {len(lengths)}){times}{later or ''}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def _time(time: float) -> str:
    """Format a time in ns in the largest unit that gives a value of at least 1."""
    unit, name = next((unit for unit in _UNITS if abs(time) >= unit[0]), _UNITS[-1])
    return f"{time / unit:.3f} {name}" if name != "ns" else f"{time:.0f} ns"


def _wrapped(label: str, text: str, indent: int, width: int) -> list[str]:
    """Lines of a label and its wrapped text; no lines for an empty text outside the shares."""
    if not text:
        return [f"  {label}"] if indent == _SHARE else []
    lines: list[str] = []
    # Keep a number and its percent sign together: textwrap does not break at U+00A0.
    for part in text.replace(" %", "\xa0%").split("\n"):
        lines += textwrap.wrap(part, max(width - indent, _LEAST), break_on_hyphens=False)
    heads = [f"  {label}", *[""] * (len(lines) - 1)]
    return [f"{head:<{indent}}{line}" for head, line in zip(heads, lines, strict=True)]
