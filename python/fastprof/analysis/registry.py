"""Reports: functions from a Profile to a Table, and those that users add. Imports no numpy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from fastprof._system.classes import dataclass
from fastprof.errors import ReportError
from fastprof.model.heading import Heading, unknown_name

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
    needs : what is computed on other threads while the function begins, see
        `fastprof.analysis.schedule`; with "host", the command reads the times of `Profile.ranges`
        and `Profile.api` together with the trace
    """

    name: str
    about: str
    function: Callable[..., Table] | str
    columns: tuple[Heading, ...] = ()
    options: tuple[Option, ...] = ()
    description: str = ""
    limit: int | None = None
    of_snapshot: Callable[..., Table] | str | None = None
    needs: tuple[str, ...] = ()

    def run(self, profile: Any, **options: Any) -> Table:
        """Call the function.

        Raises
        ------
        TypeError
            There is no such option; the message names the nearest.
        """
        function = imported(self.function)
        _check_keywords(self.name, function, options)
        if not self.needs:
            return function(profile, **options)
        from fastprof.analysis.schedule import computing

        with computing(profile, self.needs):
            return function(profile, **options)


def _check_keywords(name: str, function: Callable[..., Table], options: Mapping[str, Any]) -> None:
    """Raise TypeError if a function takes no such options, as far as can be known."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & _TAKES_ANY or not options:
        return
    valid = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    for option in options:
        if option not in valid:
            raise TypeError(unknown_name(f"option of {name}", option, valid))


_TAKES_ANY: Final = 0x08  # inspect.CO_VARKEYWORDS; importing inspect takes long


def imported(function: Callable[..., Table] | str) -> Callable[..., Table]:
    """A function, or the one that "module:function" names."""
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    return cast("Callable[..., Table]", getattr(import_module(module), name))


_added: dict[str, Report] = {}


def add(new: Report) -> None:
    """Add a report, or replace the one of the same name.

    Raises
    ------
    ReportError
        The name is not a lower-case word.
    """
    if not re.fullmatch("[a-z][a-z0-9_-]*", new.name):
        raise ReportError(
            f"report {new.name!r}: expected a name of lower-case letters, digits, - and _"
        )
    _added[new.name] = new


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


def added() -> dict[str, Report]:
    """The reports of users and of installed packages by name."""
    return _added
