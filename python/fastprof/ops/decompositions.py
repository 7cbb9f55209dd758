"""Matrix decompositions and linear solvers.

FLOPs and bytes of matrix factorisations and solutions: formulas and tables.

FLOPs are the leading terms, by the usual algorithms: Golub and Van Loan, Matrix Computations, 4th
edition (Cholesky 4.2, LU 3.2, QR 5.2, eigenvalues 7.5 and 8.3, SVD 8.6); LAPACK Working Note 41.
Iterative algorithms are estimates.

FLOPs are the leading terms: Golub and Van Loan, Matrix Computations, 4th edition, 3.1 and 3.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.registry import TORCH, op
from fastprof.ops.tensor import broadcast, elements, fresh, moved, texts


class _Row(NamedTuple):
    names: str  # of ATen
    python: str
    flops: Callable[[int, int], float]  # of rows and columns, rows no fewer
    written: int  # in matrices of the size of the one read
    square: bool
    iterates: bool
    what: str
    text: str


_ROWS: Final = (
    _Row(
        "linalg_cholesky_ex linalg_cholesky cholesky",
        "cholesky linalg_cholesky linalg_cholesky_ex",
        lambda m, n: n**3 / 3,
        1,
        True,
        False,
        "A = L L^H of positive definite matrices [.., n, n]",
        "n^3 / 3",
    ),
    _Row(
        "linalg_lu_factor_ex linalg_ldl_factor_ex _linalg_det _linalg_slogdet",
        "linalg_det det slogdet linalg_slogdet logdet lu_factor",
        lambda m, n: m * n**2 - n**3 / 3,
        1,
        False,
        False,
        "A = P L U of matrices [.., m, n], and determinants by it",
        "m n^2 - n^3 / 3, n being the smaller size: 2 n^3 / 3 of a square one",
    ),
    _Row(
        "linalg_inv_ex linalg_inv inverse cholesky_inverse",
        "inverse linalg_inv",
        lambda m, n: 2 * n**3,
        1,
        True,
        False,
        "Inverse of matrices [.., n, n]",
        "2 n^3",
    ),
    _Row(
        "linalg_qr geqrf qr",
        "qr geqrf linalg_qr",
        lambda m, n: 4 * m * n**2 - 4 * n**3 / 3,
        2,
        False,
        False,
        "A = Q R of matrices [.., m, n]",
        "2 m n^2 - 2 n^3 / 3 for R, as many for Q",
    ),
    _Row(
        "_linalg_eigh",
        "eigh eigvalsh linalg_eigh linalg_eigvalsh",
        lambda m, n: 9 * n**3,
        1,
        True,
        True,
        "Eigenvalues and vectors of symmetric matrices [.., n, n]",
        "9 n^3",
    ),
    _Row(
        "linalg_eig",
        "eig eigvals linalg_eig linalg_eigvals",
        lambda m, n: 25 * n**3,
        2,
        True,
        True,
        "Eigenvalues and vectors of matrices [.., n, n]",
        "25 n^3",
    ),
    _Row(
        "_linalg_svd",
        "svd svdvals linalg_svd linalg_svdvals",
        lambda m, n: 6 * m * n**2 + 20 * n**3,
        2,
        False,
        True,
        "A = U S V^H of matrices [.., m, n], thin",
        "6 m n^2 + 20 n^3",
    ),
)


def rows_and_columns(x: Tensor, *, square: bool = False) -> tuple[int, int, int]:
    """Number of matrices in a tensor, and their rows and columns.

    Raises CannotModel when it contains none, or they are not square although required.
    """
    if len(x.shape) < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise CannotModel(f"no {'square ' if square else ''}matrices of {x.shape}")
    return elements(x.shape[:-2]), x.shape[-2], x.shape[-1]


def _register(row: _Row) -> None:
    def formula(x: Tensor) -> Answer:
        count, rows, columns = rows_and_columns(x, square=row.square)
        more, fewer = max(rows, columns), min(rows, columns)
        flops = count * round(row.flops(more, fewer))
        written = [fresh(x)] * row.written
        return Cost(flops, moved(x, *written), not row.iterates), texts(x)

    estimate = " An estimate: it iterates." if row.iterates else ""
    formula.__doc__ = f"""{row.what}.

    FLOPs: {row.text} for each matrix.{estimate}
    Bytes: the matrices read, their factors written.
    """
    formula.__name__ = formula.__qualname__ = row.names.split()[0]
    names = [f"{name}(x, ...)" for name in row.names.split()]
    op(TORCH, *(f"{name}(x, ...)" for name in row.python.split()), aten=names)(formula)


for _row in _ROWS:
    _register(_row)


# FLOPs and bytes of systems of linear equations.


class _Solution(NamedTuple):
    aten: str
    python: str
    flops: Callable[[int, int], float]  # of n equations and k right sides
    what: str
    text: str


_SOLUTIONS: Final = (
    _Solution(
        "_linalg_solve_ex(a, b, ...) linalg_solve(a, b, ...) linalg_solve_ex(a, b, ...)",
        "linalg_solve(a, b, ...) solve(a, b, ...)",
        lambda n, k: 2 * n**3 / 3 + 2 * n**2 * k,
        "X of A X = B, A [.., n, n] and B [.., n, k], by A = P L U",
        "2 n^3 / 3 + 2 n^2 k",
    ),
    _Solution(
        "linalg_solve_triangular(a, b, ...) triangular_solve(b, a, ...)",
        "solve_triangular(a, b, ...) triangular_solve(b, a, ...)",
        lambda n, k: n**2 * k,
        "X of A X = B, A [.., n, n] triangular and B [.., n, k]",
        "n^2 k",
    ),
    _Solution(
        "cholesky_solve(b, a, ...) linalg_lu_solve(a, _, b, ...) lu_solve(b, a, ...)",
        "cholesky_solve(b, a, ...) lu_solve(a, _, b, ...)",
        lambda n, k: 2 * n**2 * k,
        "X of A X = B, A [.., n, n] by its factors and B [.., n, k]",
        "2 n^2 k",
    ),
)


def solved(a: Tensor, b: Tensor, flops: Callable[[int, int], float]) -> Answer:
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


def _register_solution(row: _Solution) -> None:
    def formula(a: Tensor, b: Tensor) -> Answer:
        return solved(a, b, row.flops)

    formula.__doc__ = f"""{row.what}.

    FLOPs: {row.text} for each matrix.
    Bytes: A and B read, X written.
    """
    formula.__name__ = formula.__qualname__ = row.aten.split("(")[0]
    op(TORCH, *_split(row.python), aten=_split(row.aten))(formula)


def _split(texts_of_rows: str) -> list[str]:
    return [f"{name})" for name in texts_of_rows.split(")") if name.strip()]


for _solution in _SOLUTIONS:
    _register_solution(_solution)
