"""The figures of a stored capture that a side does not have: MFU and memory."""

from __future__ import annotations

from fastprof.analysis.memory.report import memory
from fastprof.analysis.registry import Where
from fastprof.analysis.roofline.utilisation import devices_with, utilisation
from fastprof.profile.data import ProfileData


def mfu_and_memory(
    profile: ProfileData, steps: str | None = None, where: Where | None = None
) -> tuple[float | None, float | None]:
    """MFU, and the most memory of a GPU in bytes: what a side does not have; None if unknown.

    Raises
    ------
    StepsError
        The source of steps is unknown, or the file has no such steps.
    """
    result = None
    if not where and "start" in profile.names:
        result = utilisation(profile, profile.find_steps(steps), devices_with(profile))
    peaks = []
    if len(profile.about.memory):
        peaks = [each["peak_bytes"] for each in memory(profile, steps=steps).facts["memories"]]
    return None if result is None else result["mfu"], max(peaks, default=None)
