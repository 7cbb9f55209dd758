"""Numbers in names."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from fastprof._system.regex import regex

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
