"""The tools: their names, schemas and functions. Loads no SDK."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fastprof._system.classes import dataclass
from fastprof.analysis.reports import find, names
from fastprof.mcp import schema
from fastprof.mcp.answer import Answer, of_table
from fastprof.mcp.schema import FILE, OF_REPORT, PAGE, TRIM, Schema, of_object, page_of
from fastprof.mcp.session import OpenProfiles, Work

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Tool:
    """A tool.

    Parameters
    ----------
    name, about : for the client
    arguments, result : JSON schemas
    run : function(profiles, arguments, work) -> Answer
    """

    name: str
    about: str
    arguments: Schema
    result: Schema
    run: Callable[[OpenProfiles, Arguments, Work], Answer]


def _of_report(name: str, about: str) -> Tool:
    """The tool of one report, with its options as arguments."""
    report = find(name)
    options = schema.of_options(report)

    def run(profiles: OpenProfiles, arguments: Arguments, work: Work) -> Answer:
        given = {key: arguments[key] for key in options if key in arguments}
        return _reported(profiles, name, given, arguments, work)

    properties = {"file": FILE, **options, "trim": TRIM, **PAGE}
    return Tool(name, about, of_object(properties, "file"), OF_REPORT, run)


def _reported(
    profiles: OpenProfiles, name: str, given: Arguments, arguments: Arguments, work: Work
) -> Answer:
    """The answer with a report of a file.

    given : the options of the report
    """
    report = find(name)
    options = schema.keywords(report, given)
    with profiles.using([arguments["file"]], work) as (profile,):
        part = profiles.part(profile, arguments.get("trim"))
        table = part.report(name, **options)
        page = page_of(arguments, report.limit)
        warnings = list(profile.warnings)
        return of_table(table, page, file=profile.name, report=name, warnings=warnings)


def _any_report(profiles: OpenProfiles, arguments: Arguments, work: Work) -> Answer:
    options = arguments.get("options", {})
    return _reported(profiles, arguments["name"], options, arguments, work)


def _report_tool() -> Tool:
    described = "; ".join(
        f"{name}: {report.about} (options: {', '.join(schema.of_options(report)) or 'none'})"
        for name, report in ((name, find(name)) for name in names())
    )
    properties = {
        "file": FILE,
        "name": {"type": "string", "enum": names()},
        "options": {
            "type": "object",
            "description": "options of the report by name, as in its command: by, where, steps, "
            "...; guide has them: topic=reports/NAME",
        },
        "trim": TRIM,
        **PAGE,
    }
    about = f"Any report of a trace as a table. {described}"
    return Tool("report", about, of_object(properties, "file", "name"), OF_REPORT, _any_report)


def all_tools() -> dict[str, Tool]:
    """The tools by name."""
    tools = [_of_report(name, about) for name, about in _OF_REPORTS.items()]
    return {tool.name: tool for tool in [*tools, _report_tool()]}


_OF_REPORTS: Final = {
    "overview": "The first look at a trace: what limits the step, the largest operators, layers, "
    "lines and causes of idle time, and what to change. Begin here.",
}
