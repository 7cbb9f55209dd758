"""The reports that there are, built-in and added, and how to make one. Imports no numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastprof._system.garbage import uncollected
from fastprof.analysis.catalogue import BUILT_IN
from fastprof.analysis.registry import ENTRY_POINTS, Report, added
from fastprof.errors import ReportError
from fastprof.model.heading import unknown_name

if TYPE_CHECKING:
    from fastprof.model.table import Table
    from fastprof.profile.data import ProfileData


def names() -> list[str]:
    """The names of all reports: the built-in ones first, then those of the user."""
    return list(dict.fromkeys([*BUILT_IN, *added()]))


def all_reports() -> dict[str, Report]:
    """All reports by name, in the order of `names`."""
    return {name: _report(name) for name in names()}


def _report(name: str) -> Report:
    """The report of a name in `names`; one that a user adds replaces a built-in one."""
    return added()[name] if name in added() else BUILT_IN[name]()


def find(name: str) -> Report:
    """The report of a name; reports of installed packages are loaded if no other has it.

    Raises
    ------
    ReportError
        There is none; the message names the nearest, and the packages that failed to load.
    """
    if name not in names():
        from fastprof.ops.user import load_packages

        problems = load_packages(ENTRY_POINTS, "reports")
        if name not in names():
            unknown = unknown_name("report", name, names())
            raise ReportError("; ".join([unknown, *problems]))
    return _report(name)


def report_of(profile: ProfileData, name: str, **options: Any) -> Table:
    """The table of a report, with the facts of the profile; see `Profile.report`.

    Raises
    ------
    ReportError
        There is no such report, or an option has an invalid value.
    """
    from fastprof.model.derived import Deferred

    with uncollected():
        table = find(name).run(profile, **options)
    own = table.facts
    # Only JSON needs the facts, and they take as long as a report.
    return replace(table, facts=Deferred(lambda: {**_facts(profile, options), **own}))


def _facts(profile: ProfileData, options: Mapping[str, Any]) -> dict[str, Any]:
    from fastprof.profile.facts import facts_of

    steps = profile.find_steps(options.get("steps"))
    device, coverage = profile.column("device"), profile.coverage_of_kernels
    facts = facts_of(profile.name, profile.about, device, coverage, steps)
    return {**facts, "program": profile.contents.program.facts()}
