"""Tables: the result of a report with several tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NoReturn

from fastprof._system.classes import dataclass
from fastprof._version import __version__
from fastprof.errors import ReportError
from fastprof.model.table import SCHEMA, Table, object_of, rows_of


@dataclass(frozen=True)
class Tables(Mapping[str, Table]):
    """Tables by name, written one after another.

    Parameters
    ----------
    tables : dict of str to Table
    facts : further values of the JSON object, by name
    """

    tables: dict[str, Table]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Table:
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def head(self, n: int) -> Tables:
        """The first n rows of each table."""
        return replace(self, tables={name: each.head(n) for name, each in self.items()})

    def sort(self, by: str) -> NoReturn:
        """Not possible.

        Raises
        ------
        ReportError
        """
        raise self._one_only(f"--sort {by}")

    def select(self, names: Sequence[str]) -> NoReturn:
        """Not possible.

        Raises
        ------
        ReportError
        """
        raise self._one_only(f"--columns {','.join(names)}")

    def _one_only(self, option: str) -> ReportError:
        return ReportError(
            f"expected one table for {option}, found {len(self)}; name one of: {', '.join(self)}"
        )

    def text(self, limit: int | None = None, *, width: int | None = None) -> str:
        """Aligned text, see `Table.text`; an empty line between tables."""
        return "\n".join(each.text(limit, width=width) for each in self.values())

    def markdown(self, limit: int | None = None) -> str:
        """Markdown tables."""
        return "\n".join(each.markdown(limit) for each in self.values())

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self.values())

    def csv(self) -> str:
        """CSV of all rows; an empty line between tables."""
        return "\n".join(each.csv() for each in self.values())

    def to_json(self) -> str:
        """One JSON object: fastprof (version), schema, the facts, and rows and notes by table."""
        tables = {
            name: object_of({"notes": list(each.notes), "rows": rows_of(each, each.chunks())})
            for name, each in self.items()
        }
        members = {"fastprof": __version__, "schema": SCHEMA, **self.facts}
        return str(object_of({**members, "tables": object_of(tables)}))
