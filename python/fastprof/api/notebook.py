"""A Profile in a notebook: what it is, the step, the top operators, and how to go on."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import Final

from fastprof.analysis.reports import report_of
from fastprof.errors import FastprofError
from fastprof.model.names import printable
from fastprof.profile.data import ProfileData

_ROWS: Final = 5
_NEXT: Final = (
    *(
        "report()",
        "overview()",
        "summary(by='layer')",
        "layers(fold=True)",
        "lines()",
        "idle()",
        "advise()",
    ),
    *("plot.roofline()", "plot.timeline()", "to_pandas()"),
)


def profile_html(profile: ProfileData, title: str) -> str:
    """HTML with inline styles. All text from the file is escaped."""
    parts = [f"<div><b>{_escaped(title)}</b></div>"]
    try:
        table = report_of(profile, "summary")
    except FastprofError as error:
        parts.append(f"<div>{_escaped(str(error))}</div>")
    else:
        parts += [f"<div>{_escaped(line)}</div>" for line in takewhile(bool, table.lead)]
        notes = () if table.n_rows else table.notes
        parts.append(replace(table.head(_ROWS), lead=(), notes=notes)._repr_html_())
        if table.n_rows > _ROWS:
            parts.append(f"<div>{table.n_rows - _ROWS} more rows: summary()</div>")
    calls = ", ".join(f"<code>.{_escaped(each)}</code>" for each in _NEXT)
    return f"{''.join(parts)}<div>Next: {calls}</div>"


def _escaped(text: str) -> str:
    import html

    return html.escape(printable(text))
