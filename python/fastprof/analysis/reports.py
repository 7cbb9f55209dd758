"""The reports that there are, built-in and added, and how to make one. Imports no numpy.

Also docs/reports.md, which is made of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastprof._system.garbage import uncollected
from fastprof.analysis.catalogue import BUILT_IN
from fastprof.analysis.key_names import ALIASES, KEY_NAMES
from fastprof.analysis.registry import ENTRY_POINTS, Option, Report, added
from fastprof.errors import ReportError
from fastprof.model.heading import Heading, unknown_name

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


_HEAD = """\
# Reports

Written by `python docs/make_reports.py` from the registry of reports.

Each report is a command, `fastprof NAME FILE`, and a method, `profile.NAME()` or
`profile.report("NAME")`. Options of the command are keywords in Python. All commands also have the
options `--sort`, `--limit`, `-c` (columns), `--csv`, `--json`, `--markdown`, `-w` (width), `-o`,
`--mine`, `--ops` and `--graph-capture`. Numbers are in ns, bytes and FLOP; only text, Markdown and
notebooks choose larger units, which the header names. Unknown values are `na`, in JSON `null`.

`--json` prints one object: `fastprof` (version), `schema`, `file`, `gpu`, `steps`, `coverage`,
`notes`, `rows` and `total`.
"""


def reports_page() -> str:
    """The text of docs/reports.md."""
    parts = [_HEAD, *map(_section, all_reports().values()), _keys()]
    return "\n".join(parts)


def _section(report: Report) -> str:
    lines = [f"## {report.name}", "", _sentence(report.about), ""]
    if report.description:
        lines += ["```text", *report.description.rstrip().splitlines(), "```", ""]
    if report.options:
        lines += ["| option | |", "|---|---|"]
        for each in report.options:
            lines += [_option(option) for option in (each, each.shorthand) if option]
        lines.append("")
    if report.columns:
        lines += ["| column | unit | |", "|---|---|---|", *_columns(report.columns), ""]
    return "\n".join(lines)


def _option(option: Option) -> str:
    flag = option.name if option.is_positional else "--" + option.name.replace("_", "-")
    value = f" {option.metavar}" if option.metavar and not option.is_positional else ""
    return f"| `{flag}{_cell(value)}` | {_cell(option.about)} |"


def _columns(columns: tuple[Heading, ...]) -> Iterator[str]:
    for heading in columns:
        yield f"| `{heading.key}` | {heading.unit} | {_cell(heading.about)} |"


def _keys() -> str:
    lines = ["## Keys", "", "`--by` and `--where` accept these keys:", "", "| key | |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(about)} |" for name, about in KEY_NAMES.items()]
    lines += [f"| `{name}` | the same as `{key}` |" for name, key in ALIASES.items()]
    return "\n".join([*lines, ""])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")
