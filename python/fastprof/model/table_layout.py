"""How text shows the rows of a table that have an order of their own: trees, source files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.model.columns import Values


@dataclass(frozen=True)
class Layout:
    """The layout of text while the rows are in their original order; sorting drops it.

    Parameters
    ----------
    labels : dict of str to Values
        By column: texts [rows] in place of its cells, such as names indented by depth.
    sections : Values or None
        The section of each row, texts [rows]. Text prints the title above the section's first row.
        Markdown and HTML have no sections, and print the cells instead of the labels.
    blank : bool array [rows] or None
        Rows whose numbers text leaves empty.
    """

    labels: Mapping[str, Values] = field(default_factory=dict)
    sections: Values | None = None
    blank: npt.NDArray[np.bool_] | None = None

    def take(self, rows: npt.NDArray[np.intp]) -> Layout:
        """The layout of some rows, in this order."""
        labels = {name: each.take(rows) for name, each in self.labels.items()}
        sections = None if self.sections is None else self.sections.take(rows)
        return Layout(labels, sections, None if self.blank is None else self.blank[rows])
