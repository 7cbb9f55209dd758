"""What goes wrong in a simulated run: causes of waiting, and faults of the recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Final

import numpy as np

from bench.ranks.program import ROWS, Compute, Operation, Program


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A cause of waiting on one rank.

    Attributes
    ----------
    rank : int
    steps : tuple of int or None
        The steps with it, from 0; None: all.
    """

    cause: ClassVar[str]
    rank: int
    steps: tuple[int, ...] | None = None

    def is_in(self, step: int) -> bool:
        """Whether a step has the fault."""
        return self.steps is None or step in self.steps


@dataclass(frozen=True, kw_only=True)
class Data(Fault):
    """The DataLoader of the rank takes `ns` more."""

    cause = "data loading"
    ns: int = 5_000_000


@dataclass(frozen=True, kw_only=True)
class Gpu(Fault):
    """All compute kernels of the rank take `factor` times as long, from step `begin` on."""

    cause = "slower GPU"
    factor: float = 1.2
    begin: int = 0

    def is_in(self, step: int) -> bool:
        return step >= self.begin and super().is_in(step)


@dataclass(frozen=True, kw_only=True)
class Work(Fault):
    """More work in an operator of the rank.

    op, layer : patterns of shell, such as `*/Block_1/*`
    """

    cause = "uneven work"
    op: str = "aten::addmm"
    layer: str = "*"

    def matches(self, op: Operation) -> bool:
        """Whether the fault concerns an operation: an operator on rows."""
        return (
            isinstance(op, Compute)
            and any(ROWS in shape for shape in op.dims)
            and fnmatchcase(op.op, self.op)
            and fnmatchcase(op.layer, self.layer)
        )


@dataclass(frozen=True, kw_only=True)
class Rows(Work):
    """The operator has `factor` times as many rows, and takes as much longer."""

    factor: float = 1.5


@dataclass(frozen=True, kw_only=True)
class Calls(Work):
    """The rank calls the operator `calls` times more."""

    calls: int = 1


@dataclass(frozen=True, kw_only=True)
class Host(Fault):
    """Python and operators take `factor` times as long on the host, and Python `ns` more per step.

    The additional time spreads over the stretches of Python of a step.
    """

    cause = "host"
    factor: float = 1.0
    ns: int = 5_000_000


@dataclass(frozen=True, kw_only=True)
class Start(Fault):
    """The rank pauses once, for `ns`, when its first step begins."""

    cause = "start"
    ns: int = 20_000_000
    steps: tuple[int, ...] | None = (0,)


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The rank records offset + (1 + ppm * 1e-6) * true time.

    offset : ns
    """

    rank: int
    offset: int = 0
    ppm: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Window:
    """The recording of the rank lacks the first or last `ns`, or so many communications.

    Attributes
    ----------
    first, last : int
        ns of true time that it lacks at the begin and at the end of the run.
    first_instances, last_instances : int
        Communications of the rank that it lacks.
    """

    rank: int
    first: int = 0
    last: int = 0
    first_instances: int = 0
    last_instances: int = 0


@dataclass(frozen=True, kw_only=True)
class Missing:
    """There is no file of the rank."""

    rank: int


AnyFault = Fault | Clock | Window | Missing

KINDS: Final[dict[str, type[Any]]] = {
    "data": Data, "gpu": Gpu, "rows": Rows, "calls": Calls, "host": Host, "start": Start,
    "clock": Clock, "window": Window, "missing": Missing,
}  # fmt: skip


def parse(text: str) -> AnyFault:
    """A fault of text `KIND:RANK` or `KIND:RANK:FIELD=VALUE,...`: `data:3:ns=2e6,steps=1-2`.

    Raises
    ------
    ValueError
        The kind or a field is unknown, or a value is no number where one is expected.
    """
    kind, _, rest = text.partition(":")
    if kind not in KINDS:
        raise ValueError(f"expected one of {', '.join(KINDS)}, found {kind!r}")
    rank, _, pairs = rest.partition(":")
    types = {field.name: str(field.type) for field in fields(KINDS[kind])}
    values: dict[str, Any] = {"rank": int(rank)}
    for pair in pairs.split(",") if pairs else ():
        name, _, value = pair.partition("=")
        if name not in types:
            raise ValueError(f"expected one of {', '.join(types)}, found {name!r}")
        values[name] = _value(types[name], value)
    fault: AnyFault = KINDS[kind](**values)
    return fault


def _value(kind: str, text: str) -> Any:
    if kind.startswith("tuple"):
        first, _, last = text.partition("-")
        return tuple(range(int(first), int(last or first) + 1))
    if kind == "int":
        return round(float(text))
    return float(text) if kind == "float" else text


def with_calls(program: Program, faults: Sequence[AnyFault]) -> Program:
    """The program with the additional calls of `Calls` behind those that they repeat.

    They are in all steps; the simulation leaves them out of steps without the fault.
    """
    step: list[Operation] = []
    for op in program.step:
        step.append(op)
        for i, fault in enumerate(faults):
            is_there = op.ranks is None or fault.rank in op.ranks.tolist()
            if isinstance(fault, Calls) and fault.matches(op) and is_there:
                extra = replace(op, ranks=np.array([fault.rank]), fault=i)
                step += [extra] * fault.calls
    return program.with_step(step)


def rows_of(op: Compute, faults: Sequence[AnyFault], rank: int, step: int) -> int:
    """Rows of an operator on a rank in a step."""
    rows = op.rows
    for fault in faults:
        if isinstance(fault, Rows) and fault.rank == rank and fault.is_in(step):
            rows = round(rows * fault.factor) if fault.matches(op) else rows
    return rows
