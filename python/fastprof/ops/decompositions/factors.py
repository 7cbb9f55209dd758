"""FLOPs and bytes of matrix factorisations: one formula and a table.

FLOPs are the leading terms, by the usual algorithms: Golub and Van Loan, Matrix Computations, 4th
edition (Cholesky 4.2, LU 3.2, QR 5.2, eigenvalues 7.5 and 8.3, SVD 8.6); LAPACK Working Note 41.
Iterative algorithms are estimates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from fastprof.model.call import Tensor
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.registry import TORCH, op
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts


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

    Raises
    ------
    CannotModel
        When it contains none, or they are not square although required.
    """
    if len(x.shape) < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise CannotModel(f"no {'square ' if square else ''}matrices of {x.shape}")
    return elements(x.shape[:-2]), x.shape[-2], x.shape[-1]


def _register(row: _Row) -> None:
    def formula(x: Tensor) -> tuple[Cost, str]:
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
