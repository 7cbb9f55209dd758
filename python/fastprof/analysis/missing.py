"""Footers of reports: what the file does not record, and what to record."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fastprof.profile.advice import advice
from fastprof.profile.profile import Profile

NO_GPU_WORK: Final = "no GPU work in this capture: CPU time only"

_ENOUGH: Final = 0.95
_MOST: Final = 2


def missing(profile: Profile, depths: Collection[str]) -> tuple[str, ...]:
    """A line for each of the first two depths that less than 95 % of the GPU time has.

    depths : of `profile.coverage`: launch, range, op, shapes, cost, source line
    """
    coverage = profile.coverage_of_kernels
    if not coverage.total:
        return ()
    low = {
        depth: time / coverage.total
        for depth, time in coverage.known.items()
        if depth in depths and time < _ENOUGH * coverage.total
    }
    if not low:
        return ()
    shares = ", ".join(f"{depth} {share:.1%}" for depth, share in low.items())
    gaps = advice(profile.about, profile.contents, coverage)
    remedies = [line for depth in low for line in gaps.get(depth, [])[:1]]
    return (f"known of the GPU time: {shares}", *remedies[:_MOST])
