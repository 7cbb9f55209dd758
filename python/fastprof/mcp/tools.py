"""The tools: their names, schemas and functions. Loads no SDK."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.reports import find, names
from fastprof.errors import ReportError
from fastprof.mcp import schema
from fastprof.mcp.answer import ToolAnswer, table_answer
from fastprof.mcp.run_tools import run_tools
from fastprof.mcp.schema import FILE, OF_REPORT, PAGE, TRIM, object_schema, page_of
from fastprof.mcp.session import Job, OpenProfiles
from fastprof.mcp.tool import Arguments, Tool


def _of_report(name: str, about: str) -> Tool:
    """The tool of one report, with its options as arguments."""
    report = find(name)
    options = schema.option_schemas(report)

    def run(profiles: OpenProfiles, arguments: Arguments, work: Job) -> ToolAnswer:
        given = {key: arguments[key] for key in options if key in arguments}
        return _reported(profiles, name, given, arguments, work)

    properties = {"file": FILE, **options, "trim": TRIM, **PAGE}
    return Tool(name, about, object_schema(properties, "file"), OF_REPORT, run)


def _reported(
    profiles: OpenProfiles, name: str, given: Arguments, arguments: Arguments, work: Job
) -> ToolAnswer:
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
        without = _OF_FILE if name in _OF_WORK else ()
        head = {"file": profile.name, "report": name, "warnings": warnings}
        return table_answer(table, page, head, without)


def _any_report(profiles: OpenProfiles, arguments: Arguments, work: Job) -> ToolAnswer:
    name, given = arguments["name"], arguments.get("options", {})
    own = schema.option_schemas(find(name))
    # Rows are chosen by arguments of their own; they are options of the command.
    page = {key: value for key, value in given.items() if key in PAGE and key not in own}
    options = {key: value for key, value in given.items() if key not in page}
    if problem := schema.problem(object_schema(PAGE), page):
        raise ReportError(problem)
    return _reported(profiles, name, options, {**page, **arguments}, work)


def _report_tool() -> Tool:
    described = "; ".join(
        f"{name}: {report.about} (options: {', '.join(schema.option_schemas(report)) or 'none'})"
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
    return Tool("report", about, object_schema(properties, "file", "name"), OF_REPORT, _any_report)


def all_tools() -> dict[str, Tool]:
    """The tools by name, in the order in which clients list them."""
    tools = [_of_report(name, about) for name, about in _OF_REPORTS.items()]
    by_name = {tool.name: tool for tool in [*tools, _report_tool(), *run_tools()]}
    return {name: by_name[name] for name in _ORDER}


_OF_REPORTS: Final = {
    "overview": "The first look at a trace: what limits the step, the largest operators, layers, "
    "lines and causes of idle time, and what to change. Begin here.",
    "find": "Find kernels, copies, calls of operators, ranges or API calls one by one, in order of "
    "start: the n-th, the longest (sort), those of an operator, layer, shape, stream, step or name "
    "(where), those between two times or two kernels. idx numbers kernels for the tool kernel. "
    'Example: where=["kind=gemm"], sort=gpu_ns, limit=1.',
    "kernel": "One kernel or copy explained, by its idx from find: launch, operator, shapes, "
    "layer, source line, cost and roof, how it compares with others of its name, what it waited "
    "for, and what runs before, after and beside it.",
    "advise": "What to change to make a step shorter, the largest saving first, with the evidence.",
    "whatif": "What a step would take if some of it were faster, absent or elsewhere: the run "
    "replayed after a change.",
}
# Reports that a client asks for many times, and what `overview` says of the file.
_OF_WORK: Final = ("find", "kernel")
_OF_FILE: Final = ("gpu", "steps", "coverage", "program")
_ORDER: Final = (
    *("info", "overview", "report", "find", "kernel", "advise", "whatif", "diff", "ranks"),
    "guide",
)
