"""Section: what the file contains, and how much of the GPU time is attributed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fastprof.model.heading import Heading
from fastprof.model.numbers import quantity
from fastprof.model.table import Table, text_column
from fastprof.page.section import Fact, PageSource, Section
from fastprof.page.table import LONGEST
from fastprof.profile.data import ProfileData
from fastprof.profile.recording_hints import advice
from fastprof.writers.info import describe


def section(source: PageSource) -> Section:
    """Coverage by depth, counts of the contents, and advice on what to record."""
    profile = source.profile
    gaps = advice(profile.about, profile.contents, profile.coverage_of_kernels)
    return Section(
        "recorded",
        "What was recorded",
        facts=[*_coverage(profile), *_counts(profile)],
        tables=[("The file", _of_file(describe(profile, LONGEST)))],
        missing=[line for lines in gaps.values() for line in lines] + profile.warnings,
    )


def _coverage(profile: ProfileData) -> Iterator[Fact]:
    coverage = profile.coverage_of_kernels
    for depth, time in coverage.known.items():
        share = time / coverage.total if coverage.total else 0.0
        yield Fact(depth, f"{share:.1%}", "of the GPU time", share)


def _counts(profile: ProfileData) -> Iterator[Fact]:
    contents = profile.contents
    for kind, (n, time) in contents.work.items():
        yield Fact(f"{kind}s", f"{n:,}", quantity(time, "ns"))
    for kind, n in (contents.ranges or {}).items():
        yield Fact(f"ranges: {kind}", f"{n:,}")
    yield Fact("threads", f"{contents.threads:,}")


_HEADINGS: Final = (
    Heading("name", "property", "", "what the file records"),
    Heading("value", "value", "", "its value"),
)


def _of_file(info: dict[str, Any]) -> Table:
    """The facts of `fastprof info`."""
    result = {
        "file": info["file"],
        "format": info["format"],
        "recorded by": " ".join(filter(None, (info["tool"], info["tool_version"]))),
        "schema": info["schema_version"],
        **info["versions"],
        "GPUs": ", ".join(
            f"{each['device']}: {each['name'] or 'name not recorded'}" for each in info["gpus"]
        ),
        "rank": _rank(info["rank"]),
        "processes": ", ".join(
            f"{process['pid']} {process['name'] or ''}".strip()
            for process in info["processes"] or ()
        ),
        "span": _span(info["span"]),
        "launches": None if info["launches"] is None else f"{info['launches']:,}",
        "memory events": f"{info['memory_events']:,}" if info["memory_events"] else "none",
        "contains": ", ".join(name.replace("_", " ") for name, has in info["has"].items() if has),
    }
    known = {name: str(value) for name, value in result.items() if value}
    return Table(
        {"name": text_column(list(known)), "value": text_column(list(known.values()))}, _HEADINGS
    )


def _rank(rank: dict[str, Any] | None) -> str:
    if rank is None or rank["rank"] is None:
        return ""
    return f"{rank['rank']} of {rank['world_size']}" if rank["world_size"] else f"{rank['rank']}"


def _span(span: dict[str, int] | None) -> str:
    return "" if span is None else quantity(span["end"] - span["start"], "ns")
