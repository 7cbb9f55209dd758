"""JSON schemas of tools, made of the options of reports: names and values as in commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastprof._system.optional import import_optional
from fastprof._system.regex import regex
from fastprof.analysis.registry import Option, Report
from fastprof.errors import ReportError
from fastprof.mcp.answer import MOST_ROWS, ROWS, Paging
from fastprof.model.heading import unknown_name

Schema = dict[str, Any]

_TEXT: Final = {"type": "string", "maxLength": 4096}
FILE: Final[Schema] = {
    **_TEXT,
    "description": "trace, absolute or relative to a directory given at start; info without a "
    "file lists the traces",
}
TRIM: Final[Schema] = {
    **_TEXT,
    "description": "only this part: times since the first GPU work, such as 1.5s:4s or 200ms:, or "
    "the name or glob pattern of ranges",
}
_OF_PATTERNS: Final = frozenset({"steps", "step_range", "data"})
# Options that end a command with an exit code, or need files.
_OF_COMMANDS: Final = frozenset({"fail_above", "source", "plot"})

PAGE: Final[dict[str, Schema]] = {
    "sort": {**_TEXT, "description": "column to sort by, largest first: key or heading"},
    "ascending": {"type": "boolean", "description": "with sort: smallest first"},
    "columns": {
        "type": "array",
        "items": _TEXT,
        "maxItems": 100,
        "description": 'columns to return, by key or heading; ["all"] for all (default: those of '
        "text; more_columns names the others)",
    },
    "offset": {"type": "integer", "minimum": 0, "description": "rows to skip (default: 0)"},
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": MOST_ROWS,
        "description": f"rows to return (default: {ROWS})",
    },
}
_TABLE: Final[dict[str, Schema]] = {
    "n_rows": {"type": "integer", "description": "rows of the whole table"},
    "offset": {"type": "integer"},
    "rows": {"type": "array", "items": {"type": "object"}},
    "more_columns": {"type": "array", "items": {"type": "string"}},
    "unknown_columns": {
        "type": "array",
        "items": {"type": "string"},
        "description": "columns that are unknown in all these rows; notes say why",
    },
    "total": {"type": "object", "description": "over all rows, not only those returned"},
    "units": {"type": "object", "description": "of columns: ns, bytes, flop, share (0 to 1)"},
    "lead": {"type": "array", "items": {"type": "string"}},
    "notes": {
        "type": "array",
        "items": {"type": "string"},
        "description": "what is missing, estimated or left out, and why",
    },
    "cut": {"type": ["string", "null"], "description": "which rows these are; how to get others"},
}
OF_REPORT: Final[Schema] = {
    "type": "object",
    "properties": {
        "fastprof": {"type": "string"},
        "schema": {"type": "integer"},
        "file": {"type": "string"},
        "report": {"type": "string"},
        "warnings": {"type": "array", "items": {"type": "string"}},
        **_TABLE,
        "tables": {"type": "object", "description": "several tables by name, each as above"},
    },
    "required": ["fastprof", "schema"],
}


def object_schema(properties: Mapping[str, Schema], *required: str) -> Schema:
    """The schema of the arguments of a tool."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def option_schemas(report: Report) -> dict[str, Schema]:
    """The schemas of the options of a report by name, `step_range` and the like too."""
    result: dict[str, Schema] = {}
    for option in _options(report).values():
        result[option.name] = {**_of_option(option), "description": option.about}
    return result


def _options(report: Report) -> dict[str, Option]:
    """The options that a call may have, by name."""
    every = [each for option in report.options for each in (option, option.shorthand) if each]
    return {option.name: option for option in every if option.name not in _OF_COMMANDS}


def _of_option(option: Option) -> Schema:
    if option.is_repeatable or option.is_positional:
        item = {"type": ["string", "number"]}
        return {"type": ["array", "string", "number"], "items": item, "maxItems": 100}
    if option.metavar is None:
        return {"type": "boolean"}
    return {"type": ["string", "number"], "maxLength": 4096}


def keywords(report: Report, given: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a report's function for the values of a call, converted as in commands.

    Raises
    ------
    ReportError
        There is no such option, or its value is invalid; the message names the nearest.
    """
    options = _options(report)
    keyword_of = {
        option.shorthand.name: option.name for option in report.options if option.shorthand
    }
    result: dict[str, Any] = {}
    for name, value in given.items():
        if name not in options:
            raise ReportError(unknown_name(f"option of {report.name}", name, list(options)))
        if value is None:
            continue
        keyword = keyword_of.get(name, name)
        if keyword in result:
            raise ReportError(f"expected one of {keyword} and {name}")
        result[keyword] = _converted(options[name], value)
    return result


# Such as (a+)+: the time to search may double with each character of a name.
_NESTED: Final = regex(r"[*+}]\??\)[*+{]")


def _check_pattern(name: str, text: str) -> None:
    """Refuse regular expressions that may take for ever, which nothing can stop."""
    if _NESTED.search(text):
        raise ReportError(f"{name}: repetition within repetition, as in (a+)+: {text!r}")


def _converted(option: Option, value: Any) -> Any:
    if option.metavar is None and not option.is_positional:
        if not isinstance(value, bool):
            raise ReportError(f"{option.name}: expected true or false, found {value!r}")
        return value
    is_list = isinstance(value, list)
    for each in value if is_list else [value]:
        if option.name in _OF_PATTERNS:
            _check_pattern(option.name, str(each))
    try:
        if option.is_repeatable or option.is_positional:
            return [option.type(_text(each)) for each in (value if is_list else [value])]
        # Keys and names may come as a list: those of a command are joined by commas.
        return option.type(",".join(map(_text, value)) if is_list else _text(value))
    except ValueError as error:
        raise ReportError(f"{option.name}: {error}") from None


def _text(value: Any) -> str:
    """A value as a command has it: 2.0 is 2."""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)


def problem(schema: Schema, values: Mapping[str, Any]) -> str:
    """What is wrong with values by a schema, in a line; "" if nothing."""
    jsonschema = import_optional("jsonschema", "fastprof mcp needs")
    error = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(schema).iter_errors(values)
    )
    if error is None:
        return ""
    where = "".join(f"{each}: " for each in error.absolute_path)
    return f"{where}{str(error.message)[:500]}"


def page_of(arguments: Mapping[str, Any], limit: int | None = None) -> Paging:
    """The rows that a call asks for.

    limit : the default of the tool
    """
    return Paging(
        arguments.get("sort"),
        arguments.get("columns"),
        arguments.get("offset", 0),
        arguments.get("limit", limit or ROWS),
        arguments.get("ascending", False),
    )
