"""A small table of columns, with conversions to rows, text, CSV, Arrow and pandas."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO

import numpy as np
import numpy.typing as npt

from fastprof._system.optional import import_optional
from fastprof.model.columns import Ints, SharedValues, Values

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["Floats", "Table", "texts"]


@dataclass(frozen=True)
class Floats:
    """float64 [n]; NaN is unknown."""

    values: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)

    def array(self) -> npt.NDArray[np.float64]:
        """The numbers."""
        return self.values

    def at(self, row: int) -> float | None:
        """The value of one row, or None."""
        value = float(self.values[row])
        return None if np.isnan(value) else value


Cells = Ints | Values | Floats


def texts(values: Sequence[str | None]) -> Values:
    """A column of texts."""
    ids: dict[str, int] = {}
    numbers = [-1 if value is None else ids.setdefault(value, len(ids)) for value in values]
    return Values(np.array(numbers, np.int32), list(ids))


@dataclass(frozen=True)
class Table(Mapping[str, npt.NDArray[Any]]):
    """Columns of one length by name. Times are ns; unknown values are None.

    `table["time"]` is a NumPy array: a masked one of integers, a plain one of floats (NaN where
    unknown) or an object array of texts (None where unknown).

    Parameters
    ----------
    columns : dict of str to Ints, Values or Floats
    times : names of columns with times, shown in ms by `text`
    shares : names of columns with shares, 0 to 1, shown in per cent by `text`
    """

    columns: dict[str, Cells]
    times: frozenset[str] = frozenset()
    shares: frozenset[str] = frozenset()

    @property
    def n_rows(self) -> int:
        """The number of rows. `len` is the number of columns."""
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name].array()

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"<fastprof table: {self.n_rows} rows of {', '.join(self.columns)}>"

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dict per row."""
        for row in range(self.n_rows):
            yield {name: column.at(row) for name, column in self.columns.items()}

    def text(self, most: int | None = None) -> str:
        """The first rows as aligned text, times in ms; the last line counts omitted rows."""
        n = self.n_rows if most is None else min(most, self.n_rows)
        padded = []
        for name, column in self.columns.items():
            cells = self._cells(name, column, n)
            width = max(map(len, cells))
            pad = str.ljust if isinstance(column, Values) else str.rjust
            padded.append([pad(cell, width) for cell in cells])
        lines = ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]
        if n < self.n_rows:
            lines.append(f"... {self.n_rows - n} more rows")
        return "".join(f"{line}\n" for line in lines)

    def _cells(self, name: str, column: Cells, n: int) -> list[str]:
        """The header and the first cells of a column."""
        show, unit = _SHOWN[type(column)], ""
        if name in self.times:
            show, unit = _in_ms, "(ms)"
        elif name in self.shares:
            show, unit = _in_percent, "(%)"
        values = [column.at(row) for row in range(n)]
        return [name + unit, *("na" if value is None else show(value) for value in values)]

    def write_csv(self, file: TextIO) -> None:
        """Write all rows as CSV: every field quoted, `na` for unknown values, times in ns."""
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows():
            writer.writerow(["na" if value is None else value for value in row.values()])

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table; unknowns are null.

        Raises
        ------
        MissingDependencyError
            pyarrow is not installed.
        """
        arrow = import_optional("pyarrow", "Arrow and Parquet need")
        return arrow.table({name: _arrow(arrow, each) for name, each in self.columns.items()})

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame; texts are categories, unknowns are missing.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        pd = import_optional("pandas", "DataFrames need")
        frame: pandas.DataFrame = pd.DataFrame(
            {name: _series(pd, each) for name, each in self.columns.items()}
        )
        return frame


def _in_ms(value: int) -> str:
    return f"{value / 1e6:.3f}"


def _in_percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _as_text(value: Any) -> str:
    # Names are from files and must not contain terminal escape sequences.
    return "".join(c if c.isprintable() else " " for c in str(value))


_SHOWN: Final[dict[type, Callable[[Any], str]]] = {
    Ints: str,
    Values: _as_text,
    SharedValues: _as_text,
    Floats: lambda value: f"{value:.4g}",
}


def _arrow(arrow: Any, column: Cells) -> Any:
    if isinstance(column, Values):
        ids = arrow.array(column.ids, mask=column.ids < 0)
        valid = [str(value).encode("utf-8", "replace").decode() for value in column.values]
        return arrow.DictionaryArray.from_arrays(ids, arrow.array(valid, arrow.string()))
    unknown = (
        np.isnan(column.values) if isinstance(column, Floats) else column.values == column.none
    )
    return arrow.array(column.values, mask=unknown)


def _series(pandas: Any, column: Cells) -> Any:
    if isinstance(column, Values):
        return pandas.Categorical.from_codes(column.ids, categories=column.values)
    if isinstance(column, Floats):
        return column.values
    unknown = column.values == column.none
    if not unknown.any():
        return column.values
    return pandas.arrays.IntegerArray(np.where(unknown, 0, column.values), unknown)
