"""Tools that read several files, or none: info, diff, ranks, guide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastprof.analysis.diff.columns import DEFAULT_BY, DIFF_KEYS
from fastprof.analysis.options import STEPS, WHERE
from fastprof.analysis.registry import Option, Report
from fastprof.mcp import schema
from fastprof.mcp.answer import ToolAnswer, bounded, shortened, table_answer
from fastprof.mcp.guide import guide
from fastprof.mcp.schema import FILE, OF_REPORT, PAGE, Schema, object_schema, page_of
from fastprof.mcp.session import Job, OpenProfiles
from fastprof.mcp.tool import Arguments, Tool

_TEXT: Final[Schema] = {"type": "string", "maxLength": 4096}
_ANY: Final[Schema] = {"type": "object"}
_CAPTURE: Final[Schema] = {
    **_TEXT,
    "description": "trace, or directory with the traces of all ranks of a run",
}
_OF_DIFF: Final = Report("diff", "", "", options=(STEPS, WHERE))
_BY: Final[Schema] = {
    "type": ["array", "string"],
    "items": {"type": "string", "enum": list(DIFF_KEYS)},
    "description": f"keys of the rows (default: {', '.join(DEFAULT_BY)})",
}
_OF_RANKS: Final = Report(
    "ranks",
    "",
    "",
    options=(
        STEPS,
        Option("what_if", "replay the run with a change: see guide", "CHANGE", is_repeatable=True),
    ),
)


def info(profiles: OpenProfiles, arguments: Arguments, work: Job) -> ToolAnswer:
    """What a file contains and how much of it is known; without a file, which files there are."""
    if arguments.get("file") is None:
        return _files(profiles)
    from fastprof.writers.info import describe, info_text

    with profiles.using([arguments["file"]], work) as (profile,):
        values = bounded(describe(profile, most=50))
        values["warnings"] = bounded(profile.warnings)
        return ToolAnswer(values, shortened(info_text(describe(profile, most=10), 140)))


def _files(profiles: OpenProfiles) -> ToolAnswer:
    result = profiles.files.listing()
    lines = [f"{file['bytes']:>14,} bytes  {file['file']}" for file in result["files"]]
    if result["n_files"] > len(lines):
        lines.append(f"... {result['n_files'] - len(lines)} more files")
    directories = list(map(str, profiles.files.directories))
    head = f"{result['n_files']} traces below {', '.join(directories)}"
    values = {**result, "directories": directories, "open": profiles.open_files()}
    return ToolAnswer(values, shortened("\n".join([head, *lines])))


def compare(profiles: OpenProfiles, arguments: Arguments, work: Job) -> ToolAnswer:
    """What changed between two captures."""
    from fastprof.api.diff import diff

    sides = [profiles.files.files([arguments[name]]) for name in ("before", "after")]
    options = schema.keywords(_OF_DIFF, _given(_OF_DIFF, arguments))
    by = arguments.get("by", DEFAULT_BY)
    with profiles.using([path for side in sides for path in side], work) as opened:
        captures = opened[: len(sides[0])], opened[len(sides[0]) :]
        before, after = (side[0] if len(side) == 1 else side for side in captures)
        difference = diff(before, after, by, **options)
        return table_answer(difference.table(), page_of(arguments), {"report": "diff"})


def ranks(profiles: OpenProfiles, arguments: Arguments, work: Job) -> ToolAnswer:
    """The ranks of a run: who waits for whom, and why."""
    options = schema.keywords(_OF_RANKS, _given(_OF_RANKS, arguments))
    changes = options.pop("what_if", [])
    run = profiles.ranks(arguments["paths"], options.get("steps"), work)
    lines = [*run.lines(), ""]
    for title, table in run.tables():
        lines += [title, *table.text(8, width=140).splitlines(), ""]
    if changes:
        lines = run.what_if(changes).text(None, width=140).splitlines()
    return ToolAnswer(bounded(run.facts(changes)), shortened("\n".join(lines)))


def _given(report: Report, arguments: Arguments) -> Mapping[str, Any]:
    names = schema.option_schemas(report)
    return {name: arguments[name] for name in names if name in arguments}


def _guide(_: OpenProfiles, arguments: Arguments, __: Job) -> ToolAnswer:
    return guide(arguments.get("topic"), arguments.get("offset", 0))


_TOPIC: Final[Schema] = {
    **_TEXT,
    "description": "PAGE, PAGE/TITLE, a term of a report, or words (default: list all topics)",
}


def run_tools() -> list[Tool]:
    """The tools of this module."""
    ranks_paths = {
        "type": "array",
        "items": _TEXT,
        "minItems": 1,
        "maxItems": 10_000,
        "description": "traces, or directories of traces: all ranks of one run",
    }
    captures = {"before": _CAPTURE, "after": _CAPTURE, "by": _BY}
    of_diff = {**captures, **schema.option_schemas(_OF_DIFF), **PAGE}
    of_ranks = {"paths": ranks_paths, **schema.option_schemas(_OF_RANKS)}
    offset = {"type": "integer", "minimum": 0, "description": "lines to skip"}
    return [
        Tool("info", _ABOUT["info"], object_schema({"file": FILE}), _ANY, info),
        Tool("diff", _ABOUT["diff"], object_schema(of_diff, "before", "after"), OF_REPORT, compare),
        Tool("ranks", _ABOUT["ranks"], object_schema(of_ranks, "paths"), _ANY, ranks),
        Tool(
            "guide",
            _ABOUT["guide"],
            object_schema({"topic": _TOPIC, "offset": offset}),
            _ANY,
            _guide,
        ),
    ]


_ABOUT: Final = {
    "info": "What a trace contains: format, GPUs, processes, steps, counts, the share of GPU time "
    "attributed, and what to record for more. Without a file: the traces that can be read.",
    "diff": "Compare two captures, or two runs of several ranks: the step before and after with a "
    "95 % interval, and the work and idle time that made the change.",
    "ranks": "The traces of all ranks of one run: who waits for whom, why, and what it costs.",
    "guide": "The documentation by topic: what a command, column, term or message means, how to "
    "record, how numbers are computed.",
}
