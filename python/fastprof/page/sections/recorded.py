"""Section: what the file contains, and how much of the GPU time is attributed."""

from __future__ import annotations

from collections.abc import Iterator

from fastprof.model.quantity import quantity
from fastprof.page.section import Fact, Section, Source
from fastprof.profile.advice import advice
from fastprof.profile.profile import Profile

__all__ = ["section"]


def section(source: Source) -> Section:
    """Coverage by depth, counts of the contents, and advice on what to record."""
    profile = source.profile
    gaps = advice(profile.about, profile.contents, profile.coverage_of_kernels)
    return Section(
        "recorded",
        "What was recorded",
        facts=[*_coverage(profile), *_counts(profile)],
        missing=[line for lines in gaps.values() for line in lines] + profile.warnings,
    )


def _coverage(profile: Profile) -> Iterator[Fact]:
    coverage = profile.coverage_of_kernels
    for depth, time in coverage.known.items():
        share = time / coverage.total if coverage.total else 0.0
        yield Fact(depth, f"{share:.1%}", "of the GPU time", share)


def _counts(profile: Profile) -> Iterator[Fact]:
    contents = profile.contents
    for kind, (n, time) in contents.work.items():
        yield Fact(f"{kind}s", f"{n:,}", quantity(time, "ns"))
    for kind, n in (contents.ranges or {}).items():
        yield Fact(f"ranges: {kind}", f"{n:,}")
    yield Fact("threads", f"{contents.threads:,}")
