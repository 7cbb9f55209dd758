"""Numbers in names, and numbers with their units as text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from fastprof._system.regex import regex
from fastprof.model.heading import UNITS, Scale

# Digits that belong to a word, as in conv2d or bf16, are part of the name, unless the word counts.
_NUMBER: Final = regex(
    r"(?<![A-Za-z0-9_.])\d+(?:\.\d+)?(?![A-Za-z0-9])|(?<=[_#])\d+(?![A-Za-z0-9])"
    r"|(?<=step|iter|poch)\d+\b|(?<=batch)\d+\b|(?<=iteration)\d+\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=1 << 14)
def without_numbers(text: str) -> str:
    """A name with its numbers folded: `step 17` and `ProfilerStep#17` end in `*`."""
    return _NUMBER.sub("*", text)


# `layers.0`, `layers.0.mlp`, `block0`, `Linear_12`, `blocks[3]`; not `Conv2d` or `bf16x`.
_INDEX: Final = regex(r"\d+(?=[.\]]|\Z)")


@lru_cache(maxsize=1 << 14)
def without_index(layer: str) -> str:
    """A layer's name with its indices folded: `layers.0` and `layers.12` are both `layers.*`."""
    return _INDEX.sub("*", layer)


def scale_of(unit: str, value: float) -> Scale:
    """The largest unit of text in which the value is at least 1."""
    scales = UNITS[unit]
    return next((scale for scale in reversed(scales) if abs(value) >= scale.size), scales[0])


def quantity(value: float, unit: str) -> str:
    """A number with four digits and its unit: `quantity(174_800_000, "ns")` is `174.8 ms`."""
    scale = scale_of(unit, value)
    return f"{value / scale.size:.4g} {scale.name}"


_NS: Final = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_TIME: Final = regex(r"(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|ms|s|min)|0")


def nanoseconds(text: str) -> int | None:
    """The ns of a time such as `1.5s`, `200 us` or `0`; None if it is no time."""
    time = _TIME.fullmatch(text.strip())
    if time is None:
        return None
    return round(float(time[1]) * _NS[time[2]]) if time[1] else 0
