"""Sizes in bytes as people write them: 512M, 1.5G."""

from __future__ import annotations

import re
from typing import Final

from fastprof._system.regex import regex

EXPECTED: Final = "expected a size in bytes, such as 512M or 4G"
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE: Final = regex(r"([0-9]{1,15}(?:\.[0-9]+)?)([KMGT]?)(?:i?B)?", re.IGNORECASE)


def parse_size(text: str) -> int | None:
    """The number of bytes; None if `text` is no size. Units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    return None if match is None else int(float(match[1]) * _UNITS[match[2].upper()])


def format_size(n_bytes: float) -> str:
    """A size in M or G, rounded up to one decimal. `parse_size` accepts it."""
    unit = "G" if n_bytes >= _UNITS["G"] else "M"
    return f"{-(-n_bytes // (_UNITS[unit] / 10)) / 10:.1f}{unit}"
