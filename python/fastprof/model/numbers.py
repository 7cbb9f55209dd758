"""Numbers in names."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["without_numbers"]

# Digits that belong to a word, as in conv2d or bf16, are part of the name, unless the word counts.
_NUMBER: Final = re.compile(
    r"(?<![A-Za-z0-9_.])\d+(?:\.\d+)?(?![A-Za-z0-9])|(?<=[_#])\d+(?![A-Za-z0-9])"
    r"|(?<=step|iter|poch)\d+\b|(?<=batch)\d+\b|(?<=iteration)\d+\b",
    re.IGNORECASE,
)


def without_numbers(text: str) -> str:
    """A name with its numbers folded: `step 17` and `ProfilerStep#17` end in `*`."""
    return _NUMBER.sub("*", text)
