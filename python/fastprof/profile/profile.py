"""Profile: what is known of every kernel of a capture, as columns, rows and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastprof._system.optional import import_optional
from fastprof.model.columns import Column, Ints, Lists, SeqMarkers
from fastprof.model.metadata import About
from fastprof.profile.captured_graphs import GraphCapture
from fastprof.profile.checks import Totals, same
from fastprof.profile.counts import Contents
from fastprof.profile.coverage import Coverage

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Kernels(Mapping[str, npt.NDArray[Any]]):
    """The columns of a Profile as numpy arrays by name, each made when it is asked for.

    Numbers come as int32 or int64, `[n]` or (grid, block) `[n, 3]`, -1 where not known; texts,
    tuples and lists of numbers as objects, None where not known.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        column = self._profile.column(name)
        if isinstance(column, Ints):
            return column.values
        if isinstance(column, Lists):
            out = np.empty(len(column), object)
            for row in range(len(column)):
                out[row] = column.at(row)
            return out
        values = np.empty(len(column.values) + 1, object)
        values[:-1] = column.values
        return values[column.ids]

    def __iter__(self) -> Iterator[str]:
        return iter(self._profile.names)

    def __len__(self) -> int:
        return len(self._profile.names)


@dataclass
class Profile:
    """What is known of every kernel of a capture. Rows are in order of start.

    Columns and coverage are made when they are first asked for.

    Attributes
    ----------
    name : str
        The file it came from.
    columns : mapping of str to Column
        The columns of the report by key: idx seq altseq tid layer trace dir sub mod op kernel
        params sil tc device stream grid block flops bytes tc_reason exact (0 where flops or bytes
        are estimates, or bytes are more than 1.5 times what the memory moves in the call's time; 1
        where not) line library_line name (the full one). Times are ns. flops and
        bytes are the kernel's share of its call's; -1 is "not known", 0 is known to be nothing.
        line and library_line are the last frames of trace that are the user's, and not torch's.
    extra : dict of str to function
        What makes each further column, which only a trace tells: start and end (ns on the capture's
        clock), pid, context, correlation, registers, shared_memory (bytes a block), graph_id,
        graph_node, kind (kernel, graph, memcpy or memset), damaged (1 where the duration in the
        file cannot be true), copied (bytes of a copy or memset), copy_direction (HtoD, DtoH, ...),
        launch (the API call), launch_start, phases (ranges of the process that ended on another
        thread and were open at the launch), ranges (the user's own, outermost first), launch_ranges
        (those around the launch, where a graph's node was created elsewhere), phase (forward,
        backward, recompute, optimizer, ...), path (node of the call-path tree). A profile of dict
        lines has none of them.
    make_dict_columns : function
        Makes the columns of dict lines, by their keys; its argument may be called on a second core
        meanwhile.
    cover : function
        Adds up the coverage, of copies and memsets too if its argument is true.
    coverage, coverage_of_kernels : Coverage
    count : function
        Counts the contents.
    contents : Contents
    about : About
        Versions, names of GPUs, processes and threads, rank, steps, memory events.
    add_up : function
        Adds up the rows along calls and call paths; raises CheckError where that differs.
    recount : function or None
        Counts the file again, None where it is too damaged; without it there is no file.
    warnings : list of str
        What was wrong with the file but did not stop the reading, a line each.
    graph_capture : GraphCapture or None
        How many kernels of replayed graphs have the calls of their capture; None where no capture
        was read, or no graph needs one.
    """

    name: str
    columns: Mapping[str, Column]
    extra: Mapping[str, Callable[[], Column]]
    make_dict_columns: Callable[[Callable[[], object]], Mapping[str, Column | SeqMarkers]]
    cover: Callable[[bool], Coverage]
    count: Callable[[], Contents]
    about: About
    add_up: Callable[[], Totals]
    recount: Callable[[], Totals | None] | None = None
    warnings: list[str] = field(default_factory=list)
    graph_capture: GraphCapture | None = None

    def __len__(self) -> int:
        return len(self.columns["sil"])

    def __repr__(self) -> str:
        return f"<fastprof.Profile of {self.name}: {len(self)} kernels>"

    def dict_columns(self) -> Mapping[str, Column | SeqMarkers]:
        """The columns of dict lines, by their keys; beside them the coverage is added up."""
        return self.make_dict_columns(lambda: self.coverage)

    @cached_property
    def coverage(self) -> Coverage:
        """How much of the GPU time is known to which depth."""
        return self.cover(True)

    @cached_property
    def coverage_of_kernels(self) -> Coverage:
        """The same without memory copies and memsets, where the profile has rows for them."""
        return self.cover(False)

    @cached_property
    def contents(self) -> Contents:
        """How much the file holds of what, apart from kernels."""
        return self.count()

    def check(self) -> str:
        """Count the file again by simpler means, and compare; say what was found to agree.

        Rows and GPU time of the report with those of the file, the FLOPs of kernels with those of
        calls, and the kernels of each call path with its own and its children's.

        Raises
        ------
        CheckError
            Something was lost, or counted twice.
        BadInputError
            The file cannot be read any more.
        """
        report = self.add_up()
        file = self.recount() if self.recount is not None else None
        if file is None:
            why = "comes from a pipe" if self.recount is None else "is damaged"
            return f"{report} agree with calls and call paths; the input {why}: not counted again"
        same(self.name, file, report)
        doubt = f", but for {report.unsure} durations that cannot be true" if report.unsure else ""
        return f"{report} agree with the file{doubt}, with calls and with call paths"

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        return [*self.columns, *self.extra]

    @property
    def kernels(self) -> Kernels:
        """The columns as numpy arrays by name."""
        return Kernels(self)

    def column(self, name: str) -> Column:
        """A column by name, as it is kept.

        Raises
        ------
        KeyError
            There is no column of that name.
        """
        if name in self.columns:
            return self.columns[name]
        if name in self.extra:
            return self.extra[name]()
        raise KeyError(f"no column {name!r}; there are {', '.join(self.names)}")

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dict a kernel: the value of every column by its name, None where not known."""
        columns = {name: self.column(name) for name in self.names}
        for row in range(len(self)):
            yield {name: column.at(row) for name, column in columns.items()}

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table of all columns; texts are dictionary-encoded, unknowns are null.

        Raises
        ------
        MissingDependencyError
            pyarrow is not installed.
        """
        from fastprof.report.parquet import to_arrow

        return to_arrow({name: self.column(name) for name in self.names})

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame of all columns; texts are categories, unknowns are missing.

        grid and block become grid_x, grid_y, grid_z and so on.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        pd = import_optional("pandas", "DataFrames need")
        data: dict[str, Any] = {}
        for name in self.names:
            data.update(_series(pd, name, self.column(name)))
        frame: pandas.DataFrame = pd.DataFrame(data)
        return frame


def _series(pd: Any, name: str, column: Column) -> dict[str, Any]:
    if isinstance(column, Lists):
        return {name: [column.at(row) for row in range(len(column))]}
    if isinstance(column, Ints):
        if column.values.ndim == 2:
            return {
                f"{name}_{axis}": _nullable(pd, column.values[:, i], column.none)
                for i, axis in enumerate("xyz")
            }
        return {name: _nullable(pd, column.values, column.none)}
    if all(isinstance(value, str) for value in column.values):
        return {name: pd.Categorical.from_codes(column.ids, categories=column.values)}
    values = np.empty(len(column.values) + 1, object)
    values[:-1] = column.values
    return {name: values[column.ids]}


def _nullable(pd: Any, values: npt.NDArray[Any], none: int) -> Any:
    unknown = values == none
    if not unknown.any():
        return values
    return pd.arrays.IntegerArray(np.where(unknown, 0, values), unknown)
