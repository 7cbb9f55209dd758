"""FLOPs and bytes of systems of linear equations.

FLOPs are the leading terms: Golub and Van Loan, Matrix Computations, 4th edition, 3.1 and 3.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from fastprof.model.call import Tensor
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.decompositions.factors import rows_and_columns
from fastprof.ops.registry import TORCH, op
from fastprof.ops.tensor import broadcast, elements
from fastprof.ops.traffic import fresh, moved, texts


class _Row(NamedTuple):
    aten: str
    python: str
    flops: Callable[[int, int], float]  # of n equations and k right sides
    what: str
    text: str


_ROWS: Final = (
    _Row(
        "_linalg_solve_ex(a, b, ...) linalg_solve(a, b, ...) linalg_solve_ex(a, b, ...)",
        "linalg_solve(a, b, ...) solve(a, b, ...)",
        lambda n, k: 2 * n**3 / 3 + 2 * n**2 * k,
        "X of A X = B, A [.., n, n] and B [.., n, k], by A = P L U",
        "2 n^3 / 3 + 2 n^2 k",
    ),
    _Row(
        "linalg_solve_triangular(a, b, ...) triangular_solve(b, a, ...)",
        "solve_triangular(a, b, ...) triangular_solve(b, a, ...)",
        lambda n, k: n**2 * k,
        "X of A X = B, A [.., n, n] triangular and B [.., n, k]",
        "n^2 k",
    ),
    _Row(
        "cholesky_solve(b, a, ...) linalg_lu_solve(a, _, b, ...) lu_solve(b, a, ...)",
        "cholesky_solve(b, a, ...) lu_solve(a, _, b, ...)",
        lambda n, k: 2 * n**2 * k,
        "X of A X = B, A [.., n, n] by its factors and B [.., n, k]",
        "2 n^2 k",
    ),
)


def solved(a: Tensor, b: Tensor, flops: Callable[[int, int], float]) -> tuple[Cost, str]:
    """Cost of solving A X = B. B [.., n] contains vectors if A has one more dimension."""
    _, n, _ = rows_and_columns(a, square=True)
    vectors = len(b.shape) == len(a.shape) - 1 and b.shape == a.shape[:-1]
    right = (*b.shape, 1) if vectors else b.shape
    if len(right) < 2 or n not in right[-2:]:
        raise CannotModel(f"matrices {a.shape} do not fit right sides {b.shape}")
    sides = right[-1] if right[-2] == n else right[-2]
    batch = broadcast(a.shape[:-2], right[:-2])
    result = fresh(b, (*batch, *(b.shape[-1:] if vectors else right[-2:])))
    count = elements(batch) * round(flops(n, sides))
    return Cost(count, moved(a, b, result)), texts(a, b)


def _register(row: _Row) -> None:
    def formula(a: Tensor, b: Tensor) -> tuple[Cost, str]:
        return solved(a, b, row.flops)

    formula.__doc__ = f"""{row.what}.

    FLOPs: {row.text} for each matrix.
    Bytes: A and B read, X written.
    """
    formula.__name__ = formula.__qualname__ = row.aten.split("(")[0]
    op(TORCH, *_split(row.python), aten=_split(row.aten))(formula)


def _split(texts_of_rows: str) -> list[str]:
    return [f"{each})" for each in texts_of_rows.split(")") if each.strip()]


for _row in _ROWS:
    _register(_row)
