"""Collapsed stacks: `forward;encoder;linear;gemm 1200`, as flamegraph.pl and its kin read them.

The format: https://github.com/brendangregg/FlameGraph#2-fold-stacks
"""

from __future__ import annotations

from typing import BinaryIO

from fastprof.analysis.registry import Where
from fastprof.analysis.stacks.tree import DIRECTIONS, stacks
from fastprof.exports.events import own_weights, paths_of
from fastprof.profile.data import ProfileData

# Frames end with a semicolon, stacks with a line; readers in Python split at all of these.
_SEPARATORS = str.maketrans(
    {";": ",", **dict.fromkeys("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\0", " ")}
)


def write(
    profile: ProfileData,
    file: BinaryIO,
    stack: str = "layers",
    weight: str = "ns",
    where: Where | None = None,
) -> None:
    """Write a line for each stack with a weight; forward, backward and other work are roots.

    Parameters
    ----------
    profile : the profile
    file : binary file
    stack : of `analysis.stacks.TREES`
    weight : ns, flops, bytes or lost (ns)
    where : selects GPU work, as in reports

    Raises
    ------
    ReportError
        An option is invalid, or nothing has such a weight.
    """
    tree = stacks(profile, stack, where=where)
    weights = own_weights(tree, weight)
    names = [str(name).translate(_SEPARATORS) for name in tree.name.array().tolist()]
    paths = paths_of(tree)
    for column, direction in enumerate(DIRECTIONS):
        lines = [
            ";".join([direction, *(names[path] for path in paths[row])])
            + f" {weights[row, column]}\n"
            for row in weights[:, column].nonzero()[0].tolist()
        ]
        file.write("".join(lines).encode("utf-8", "replace"))
