"""docs/reports.md, from the registry of reports."""

from __future__ import annotations

from collections.abc import Iterator

from fastprof.analysis.key_names import ALIASES, KEY_NAMES
from fastprof.analysis.registry import Option, Report
from fastprof.analysis.reports import all_reports
from fastprof.model.heading import Heading

_HEAD = """\
# Reports

Written by `python docs/make_reports.py` from the registry of reports.

Each report is a command, `fastprof NAME FILE`, and a method, `profile.NAME()` or
`profile.report("NAME")`. Options of the command are keywords in Python. All commands also have the
options `--sort`, `--ascending`, `--limit`, `-c` (columns), `--csv`, `--json`, `--markdown`, `-w`
(width), `--color`, `-o`, `--mine`, `--ops` and `--graph-capture`. Numbers are in ns, bytes and
FLOP; only text, Markdown and notebooks choose larger units, which the header names. Unknown values
are `na`, in JSON `null`.

`--sort`, `-c` and the methods of a Table take the key of a column or its heading in text, with or
without the unit: `--sort gpu_ns`, `--sort gpu`, `--sort 'gpu(ms)'`.

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
        head = ["| key | heading in text | unit | |", "|---|---|---|---|"]
        lines += [*head, *_columns(report.columns), ""]
    return "\n".join(lines)


def _option(option: Option) -> str:
    flag = option.name if option.is_positional else "--" + option.name.replace("_", "-")
    value = f" {option.metavar}" if option.metavar and not option.is_positional else ""
    return f"| `{flag}{_cell(value)}` | {_cell(option.about)} |"


def _columns(columns: tuple[Heading, ...]) -> Iterator[str]:
    for heading in columns:
        in_text = heading.header if heading.in_text else ""
        yield f"| `{heading.key}` | {in_text} | {heading.unit} | {_cell(heading.about)} |"


def _keys() -> str:
    lines = ["## Keys", "", "`--by` and `--where` accept these keys:", "", "| key | |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(about)} |" for name, about in KEY_NAMES.items()]
    lines += [f"| `{name}` | the same as `{key}` |" for name, key in ALIASES.items()]
    return "\n".join([*lines, ""])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")
