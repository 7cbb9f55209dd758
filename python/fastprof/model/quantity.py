"""A number with its unit as text."""

from __future__ import annotations

from fastprof.model.heading import UNITS, Scale


def scale_of(unit: str, value: float) -> Scale:
    """The largest unit of text in which the value is at least 1."""
    scales = UNITS[unit]
    return next((each for each in reversed(scales) if abs(value) >= each.size), scales[0])


def quantity(value: float, unit: str) -> str:
    """A number with four digits and its unit: `quantity(174_800_000, "ns")` is `174.8 ms`."""
    scale = scale_of(unit, value)
    return f"{value / scale.size:.4g} {scale.name}"
