"""Texts of user ranges without their numbers: `step 17` becomes `step *`."""

from __future__ import annotations

import re
from typing import Final

# Digits that are part of a name (conv2d, v100) stay.
_NUMBER: Final = re.compile(r"(?<![A-Za-z0-9])\d+(?:\.\d+)*(?![A-Za-z0-9])")


def folded(text: str) -> str:
    """The text with `*` for each number, so that ranges numbered by step or layer are equal."""
    return _NUMBER.sub("*", text)
