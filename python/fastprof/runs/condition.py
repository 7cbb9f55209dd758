"""The condition of `fastprof run --when`: after which steps to record, and why it did."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf
from typing import Any, Final, Literal

from fastprof._system.classes import dataclass
from fastprof.errors import BadInputError
from fastprof.model.numbers import quantity

_NUMBER: Final = r"(\d+(?:\.\d*)?|\.\d+)"
_WORDS: Final = re.compile(r"\s*(\w*)\s*([<>=!]*)\s*(.*?)\s*", re.DOTALL)
_OF_MEDIAN: Final = re.compile(rf"(?:{_NUMBER}\s*\*\s*)?median")
_AMOUNT: Final = re.compile(rf"{_NUMBER}\s*([a-zµ%]*)")
_TIMES: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_SHARES: Final = {"": 100.0, "%": 1.0}  # in %
_EXAMPLE: Final = "such as 'step > 1.2 * median', 'step > 200ms' or 'memory > 0.95'"


@dataclass(frozen=True)
class Condition:
    """A limit of the length of a step, or of the GPU memory that torch has reserved.

    Parameters
    ----------
    of : "step" or "memory"
    with_limit : also hold for a value equal to the limit
    limit : ns; a multiple of the median; or a share of the GPU's memory
    is_of_median : `limit` is a multiple of the median of the steps before
    """

    of: Literal["step", "memory"]
    with_limit: bool
    limit: float
    is_of_median: bool = False

    @property
    def limits(self) -> tuple[float, float]:
        """Of the length of a step: a multiple of the median, or 0 and ns."""
        return (self.limit, inf) if self.is_of_median else (0.0, self.limit)

    def holds_for(self, share: float) -> bool:
        """Whether it holds for a share of the memory."""
        return share >= self.limit if self.with_limit else share > self.limit


NEVER: Final = Condition("step", False, inf)


def parse_condition(text: str) -> Condition:
    """Read `NAME OP LIMIT`: `step > 1.2 * median`, `step >= 200ms`, `memory > 95%`.

    Raises
    ------
    BadInputError
        The text is none; says what was expected.
    """
    match = _WORDS.fullmatch(text)
    name, operator, rest = match.groups() if match else ("", "", "")
    if operator not in (">", ">=") or name not in ("step", "memory"):
        what = "> or >=" if name in ("step", "memory") else "step or memory"
        raise _unexpected(text, f"{what}, {_EXAMPLE}", operator if what[0] == ">" else name)
    with_limit = operator == ">="
    if name == "memory":
        percent = _amount(rest, _SHARES)
        if percent is None or not 0 < percent < 100:
            raise _unexpected(text, "a share of the GPU's memory, such as 0.95 or 95%", rest)
        return Condition("memory", with_limit, percent / 100)
    median = _OF_MEDIAN.fullmatch(rest)
    length = float(median[1] or 1) if median else _amount(rest, _TIMES)
    if not length:
        raise _unexpected(text, "NUMBER * median, or a time with ns, us, ms or s", rest)
    return Condition("step", with_limit, length, median is not None)


def _amount(text: str, units: dict[str, float]) -> float | None:
    match = _AMOUNT.fullmatch(text)
    return float(match[1]) * units[match[2]] if match and match[2] in units else None


def _unexpected(text: str, expected: str, found: str) -> BadInputError:
    return BadInputError(f"{text!r}: expected {expected}, found {found!r}")


_MOST_LINES: Final = 8


def causes_of(processes: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each recording that began since the condition held.

    Parameters
    ----------
    processes : the reports of the processes, see `collect`
    """
    lines = [
        f"{_of_rank(process)}{_measured(cause)}{_recorded(recording)}"
        for process in processes
        for recording in process["recordings"]
        if (cause := recording.get("cause"))
    ]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"and {len(lines) - _MOST_LINES} more recordings: see run.json"]
    return lines


def never_held(processes: Sequence[dict[str, Any]], when: str) -> str:
    """Why nothing is recorded: the longest step, or the fullest memory, of all processes."""
    of = parse_condition(when).of
    most = [process["most"] for process in processes if process.get("most")]
    n_steps = max(int(process["steps"]) for process in processes)
    start = f"nothing recorded: --when '{when}'"
    if not most and of == "memory":
        return f"{start} watched no GPU: torch used none on this machine"
    if not most:
        return f"{start} needs a median of at least 10 steps after the first 4; found {n_steps}"
    if of == "memory":
        cause = max(most, key=lambda each: float(each["memory"]))
        return f"{start} never held: {_measured(cause)} at most; lower the limit"
    cause = max(most, key=lambda each: int(each["ns"]))
    return f"{start} never held in {n_steps} steps: the longest, {_measured(cause)}"


def _measured(cause: dict[str, Any]) -> str:
    if "memory" in cause:
        share = f"{cause['memory']:.1%}"
        return f"torch had reserved {share} of the GPU's memory after step {cause['step']}"
    median = quantity(cause["median_ns"], "ns")
    where = " on the GPU" if cause.get("on") == "gpu" else ""
    return f"step {cause['step']} took {quantity(cause['ns'], 'ns')}{where}, median {median}"


def _recorded(recording: dict[str, Any]) -> str:
    first, n_steps = recording["first"], recording["n_steps"]
    if not n_steps:
        return ", but the program ended before a step after it was recorded"
    return f": recorded step{f's {first} to' if n_steps > 1 else ''} {first + n_steps - 1}"


def _of_rank(process: dict[str, Any]) -> str:
    return f"rank {process['rank']}: " if process["world"] > 1 else ""
