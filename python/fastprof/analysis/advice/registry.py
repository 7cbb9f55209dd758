"""The registry of rules: functions from Facts to Findings. Imports no numpy."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeVar

from fastprof._system.classes import dataclass
from fastprof.analysis.advice.finding import Finding
from fastprof.errors import ReportError

if TYPE_CHECKING:
    from fastprof.analysis.advice.calls import CallFinding, CallGroups
    from fastprof.analysis.advice.facts import Facts


ENTRY_POINTS: Final = "fastprof.rules"

# The modules of the built-in rules, in the order of reports.
_BUILT_IN: Final = {
    "data-loading": "idle",
    "launch-bound": "idle",
    "host-bound": "idle",
    "garbage-collection": "idle",
    "gil": "idle",
    "off-cpu": "idle",
    "graph-gaps": "idle",
    "queued-gaps": "idle",
    "alloc": "capture",
    "sync": "sync",
    "no-tensor-cores": "tensor_cores",
    "bad-shape": "tensor_cores",
    "unfused-attention": "attention",
    "layout": "layout",
    "autocast-casts": "layout",
    "copies-in-model": "layout",
    "optimizer-loop": "update",
    "elementwise-chain": "pointwise",
    "small-grid": "far_from_roof",
    "dead-gradient": "update",
    "embedding-gradient": "update",
    "far-from-roof": "far_from_roof",
    "unaligned-kernel": "tensor_cores",
    "unfused-pointwise": "pointwise",
    "gradient-fills": "update",
    "unfused-optimizer": "update",
    "parameter-upload": "copies",
    "exposed-comm": "communication",
    "unbalanced-comm": "communication",
    "late-ranks": "communication",
    "exposed-copy": "copies",
    "device-copy": "copies",
    "low-occupancy": "cuda",
    "default-stream": "cuda",
    "recompute": "memory",
    "zero-grad": "memory",
    "uneven-steps": "capture",
    "memory-headroom": "memory",
    "cudnn-benchmark": "memory",
    "capture": "capture",
}

_PACKAGE: Final = "fastprof.analysis.advice.rules"

Function = TypeVar("Function", bound="Callable[[Facts], Iterable[Finding]]")


@dataclass(frozen=True)
class Rule:
    """A rule.

    Parameters
    ----------
    id : lower-case words joined by `-`
    about : one line
    function : Facts -> Findings; raises CannotJudge
    least : smallest saving that is listed, as a share of the step
    programs : the kinds of programs that it is for (`fastprof.profile.program`); None for all
    needs : what the function needs, see `Facts.need`
    """

    id: str
    about: str
    function: Callable[[Facts], Iterable[Finding]]
    least: float = 0.0
    programs: Collection[str] | None = None
    needs: tuple[str, ...] = ()

    def findings(self, facts: Facts) -> Iterable[Finding]:
        """The findings in a capture; raises CannotJudge if it lacks what the rule needs."""
        facts.need("work", *self.needs)
        return self.function(facts)


_rules: dict[str, Rule] = {}


def rule(
    id: str,  # noqa: A002
    *,
    least: float = 0.01,
    programs: Collection[str] | None = None,
    needs: tuple[str, ...] = (),
) -> Callable[[Function], Function]:
    """Register a function as a rule of `fastprof advise`; it replaces the one of the same id.

    >>> @fastprof.rule("many-copies")  # doctest: +SKIP
    ... def many_copies(facts):
    ...     '''Copies that one larger copy can replace.'''
    ...     rows = np.flatnonzero(facts.profile.kernels["class"] == "memcpy")
    ...     if len(rows) > 100 * facts.n_steps:
    ...         yield fastprof.Finding(
    ...             what="The step makes more than 100 copies.",
    ...             remedy="copy one batch with one call",
    ...             kernels=rows,
    ...             gpu_ns=facts.own_ns(rows) / 2,
    ...         )

    Parameters
    ----------
    id : lower-case words joined by `-`
    least : smallest saving that is listed, as a share of the step; `--min` replaces it
    programs : the kinds of programs that it is for, such as "torch training"; None for all
    needs : what the function needs, see `Facts.need`

    Raises
    ------
    ReportError
        The id has another form.
    """
    if not re.fullmatch("[a-z][a-z0-9]*(-[a-z0-9]+)*", id):
        raise ReportError(f"rule {id!r}: expected an id of lower-case words joined by -")

    def register(function: Function) -> Function:
        about = (function.__doc__ or "").strip().partition("\n")[0]
        _rules[id] = Rule(id, about, function, least, programs, needs)
        return function

    return register


CLAIMING: Final[list[Callable[[CallGroups], list[CallFinding]]]] = []
"""The rules on calls whose findings are more specific than that a kernel is far from its roof."""

Judge = TypeVar("Judge", bound="Callable[[CallGroups], list[CallFinding]]")


def call_rule(
    id: str,  # noqa: A002
    *,
    least: float,
    programs: Collection[str] | None = None,
    needs: tuple[str, ...] = (),
    claims: bool = True,
) -> Callable[[Judge], Judge]:
    """Register a function of groups of equal calls as a rule.

    id, least, programs, needs : see `rule`
    claims : whether the kernels of its findings belong to CLAIMING
    """

    def register(judge: Judge) -> Judge:
        @wraps(judge)
        def findings(facts: Facts) -> Iterator[Finding]:
            return (finding.finding(facts.calls) for finding in facts.calls.judged(judge))

        rule(id, least=least, programs=programs, needs=needs)(findings)
        if claims:
            CLAIMING.append(judge)
        return judge

    return register


def all_rules() -> dict[str, Rule]:
    """All rules by id, the built-in ones first, then those of the user."""
    own = dict(_rules)
    for name in dict.fromkeys(_BUILT_IN.values()):
        import_module(f"{_PACKAGE}.{name}")
    _rules.update(own)  # a rule of the user may be registered before the built-in one it replaces
    # Another thread, or another report, may have imported some of the modules in another order.
    built_in = [
        name
        for name in _BUILT_IN
        if name in _rules and _rules[name].function.__module__.startswith(_PACKAGE)
    ]
    return {name: _rules[name] for name in dict.fromkeys([*built_in, *_rules])}
