"""Options that several reports share. Imports no numpy."""

from __future__ import annotations

from typing import Final

from fastprof.profile.reports import Option

__all__ = ["WHERE", "by", "names"]


def names(text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found):
        raise ValueError(f"expected names separated by commas, found {text!r}")
    return found


def by(default: tuple[str, ...]) -> Option:
    """The grouping keys of a report."""
    return Option(
        "by",
        f"keys to group by, separated by commas (default: {','.join(default)})",
        "KEYS",
        names,
        default,
    )


WHERE: Final = Option(
    "where",
    "only work whose key matches a glob pattern, e.g. op=linear or layer='*attention*'; != "
    "excludes (repeatable: patterns of one key are alternatives, keys are combined)",
    "KEY=PATTERN",
    is_repeatable=True,
)
