"""The registry of reports: functions from a Profile to a Table. Imports no numpy.

The command line, docs/reports.md and Python list the reports of this registry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from fastprof._system.classes import dataclass
from fastprof.errors import ReportError
from fastprof.model.heading import Heading
from fastprof.model.names import unknown_name

if TYPE_CHECKING:
    from fastprof.model.table import Table

ENTRY_POINTS: Final = "fastprof.reports"

# The conditions of the option `where`: {"op": "linear"} or ["op=linear"].
Where = Mapping[str, str | Sequence[str]] | Sequence[str]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """An option of a report: a keyword of its function and an option of its command.

    Parameters
    ----------
    name : the keyword; `--name` on the command line, `_` becomes `-`
    about : one line of help
    metavar : placeholder of its value in help; None for a flag
    type : converts the text of the command line; raises ValueError if it is invalid
    default : the value without the option
    is_repeatable : the value is a list
    is_positional : an argument without `--`, any number of values
    shorthand : another option of the command for the same keyword; its `type` makes the value
    """

    name: str
    about: str
    metavar: str | None = None
    type: Callable[[str], Any] = str
    default: Any = None
    is_repeatable: bool = False
    is_positional: bool = False
    shorthand: Option | None = None


@dataclass(frozen=True)
class Report:
    """A report.

    Parameters
    ----------
    name : the command, and the name in `Profile.report`
    about : one line of help
    description : the help text of the command, with an example
    function : function(profile, **options) -> Table, or "module:function" to import on first use
    columns : the columns of the table
    options : keywords of the function
    limit : rows that the command prints by default; None for all
    of_snapshot : function(path, **options) -> Table for a memory snapshot of torch instead of a
        trace, or "module:function"; None if the report needs a trace
    uses_host : whether the function needs the times of `Profile.ranges` or `Profile.api`; the
        command then reads them together with the trace
    """

    name: str
    about: str
    function: Callable[..., Table] | str
    columns: tuple[Heading, ...] = ()
    options: tuple[Option, ...] = ()
    description: str = ""
    limit: int | None = None
    of_snapshot: Callable[..., Table] | str | None = None
    uses_host: bool = False

    def run(self, profile: Any, **options: Any) -> Table:
        """Call the function."""
        return imported(self.function)(profile, **options)


def imported(function: Callable[..., Table] | str) -> Callable[..., Table]:
    """A function, or the one that "module:function" names."""
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    return cast("Callable[..., Table]", getattr(import_module(module), name))


_reports: dict[str, Report | Callable[[], Report]] = {}


def add_later(name: str, make: Callable[[], Report]) -> None:
    """Add a report that a function returns when it is needed."""
    _reports[name] = make


def add(new: Report) -> None:
    """Add a report to the registry, or replace the one of the same name.

    Raises
    ------
    ReportError
        The name is not a lower-case word.
    """
    if not re.fullmatch("[a-z][a-z0-9_-]*", new.name):
        raise ReportError(
            f"report {new.name!r}: expected a name of lower-case letters, digits, - and _"
        )
    _reports[new.name] = new


def report(
    name: str,
    about: str = "",
    *,
    columns: Sequence[Heading] = (),
    options: Sequence[Option] = (),
    limit: int | None = None,
) -> Callable[[Function], Function]:
    """Register a function of a Profile as a report: `fastprof NAME FILE`, `profile.report(NAME)`.

    >>> @fastprof.report("by_stream", "GPU time by stream")  # doctest: +SKIP
    ... def by_stream(profile):
    ...     return profile.summary(by="stream")

    Parameters
    ----------
    name, about, columns, options, limit : see `Report`; `about` is by default the first line of the
        docstring

    Raises
    ------
    ReportError
        The name is not a lower-case word.
    """

    def register(function: Function) -> Function:
        text = (function.__doc__ or "").strip()
        first = text.partition("\n")[0]
        add(
            Report(
                name,
                about or first,
                function,
                tuple(columns),
                tuple(options),
                text or about,
                limit,
            )
        )
        return function

    return register


def names() -> list[str]:
    """The names of all reports: the built-in ones first, then those of the user."""
    # The built-in reports are above this module, and register themselves like those of a user.
    import_module("fastprof.analysis.catalogue")
    return list(_reports)


def all_reports() -> dict[str, Report]:
    """All reports by name, in the order of `names`."""
    return {name: _made(name) for name in names()}


def _made(name: str) -> Report:
    """The report of a name in the registry."""
    kept = _reports[name]
    if not isinstance(kept, Report):
        kept = _reports[name] = kept()
    return kept


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
    return _made(name)
