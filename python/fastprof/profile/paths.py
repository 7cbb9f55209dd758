"""The call-path tree of a trace: `Profile.paths`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fastprof._core import _path
from fastprof._system.classes import dataclass
from fastprof._system.optional import import_optional
from fastprof.model.arrays import Int32
from fastprof.model.columns import Values
from fastprof.model.markers import Kind, Meaning
from fastprof.model.numbers import without_numbers
from fastprof.profile.callpath.attribution import Attribution

if TYPE_CHECKING:
    import pandas

_KINDS: Final = {
    Kind.TORCH: "operator",
    Kind.ARGUMENT: "annotation",
    Kind.MODULE: "annotation",
    Kind.TRACE: "annotation",
    Kind.LAYER: "layer",
    Kind.USER: "user",
    Kind.FRAME: "python",
    Kind.HIDDEN: "python",
}


@dataclass(frozen=True, eq=False)
class Paths:
    """The call-path tree: one row per distinct chain of range names. Parents precede children.

    The column `path` of kernels contains rows of this table.

    Parameters
    ----------
    parent : int32 [n]
        The row of the enclosing path, -1 for none.
    level : int32 [n]
        0 for the outermost.
    label : Values
        The innermost name of the path.
    folded : Values
        Names to group by: operators without shapes; user ranges with `*` for each number, so that
        `step 17` and `step 18` are both `step *`.
    kind : Values
        operator, annotation, layer, user or python.
    """

    parent: Int32
    level: Int32
    label: Values
    folded: Values
    kind: Values

    def __len__(self) -> int:
        return len(self.parent)

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame: parent, level, label, folded, kind.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        library = import_optional("pandas", "DataFrames need")
        texts = {"label": self.label, "folded": self.folded, "kind": self.kind}
        frame: pandas.DataFrame = library.DataFrame(
            {"parent": self.parent, "level": self.level}
            | {
                name: library.Categorical.from_codes(column.ids, categories=column.values)
                for name, column in texts.items()
            }
        )
        return frame


def paths_of(attribution: Attribution) -> Paths:
    """The call-path tree; linear in its nodes."""
    meaning = Values(attribution.node_label, attribution.meanings)
    return Paths(
        parent=attribution.node_parent,
        level=_path.levels(attribution.node_parent),
        label=meaning.mapped(lambda m: m.label),
        folded=meaning.mapped(_folded),
        kind=meaning.mapped(lambda m: _KINDS[m.kind]),
    )


def _folded(meaning: Meaning) -> str:
    return without_numbers(meaning.label) if meaning.kind == Kind.USER else meaning.name
