"""Options that several reports share. Imports no numpy."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.key_names import condition, keys
from fastprof.analysis.registry import Option


def by(default: str) -> Option:
    """The grouping keys of a report; `default` describes the keys without the option."""
    return Option("by", f"keys to group by, separated by commas (default: {default})", "KEYS", keys)


STEPS: Final = Option(
    "steps",
    "what a step is: ProfilerStep, iteration (of a serving engine), range:REGEX, DataLoader, "
    "Optimizer.step, graph, repetition, anchor:REGEX (an operator or kernel) or none (default: "
    "the first that applies)",
    "SOURCE",
    shorthand=Option(
        "step_range",
        "each of your outermost ranges whose name matches is a step: --steps range:PATTERN",
        "PATTERN",
        lambda text: f"range:{text}",
    ),
)


def choice(name: str, about: str, values: tuple[str, ...], default: str = "") -> Option:
    """An option with one of some values, by default the first.

    default : what help says of a default that is not the same everywhere; then None
    """

    def of(text: str) -> str:
        if text not in values:
            raise ValueError(f"expected {' or '.join(values)}, found {text!r}")
        return text

    about = f"{about} (default: {default or values[0]})"
    return Option(name, about, "|".join(values), of, None if default else values[0])


def _depth(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not int(text):
        raise ValueError(f"expected a positive number, found {text!r}")
    return int(text)


DEPTH: Final = Option(
    "depth", "deeper layers are part of their ancestor at this depth, counted from 1", "N", _depth
)
WHERE: Final = Option(
    "where",
    "only work whose key matches a glob pattern, e.g. op=linear or layer='*attention*'; != "
    "excludes (repeatable: patterns of one key are alternatives, keys are combined)",
    "KEY=PATTERN",
    lambda text: condition(text) and text,
    is_repeatable=True,
)

CPU: Final = Option(
    "cpu",
    "add the CPU time of operators, user ranges and API calls, and the memory that they allocate "
    "if the trace records it; without GPU work, these are always shown",
    default=False,
)
