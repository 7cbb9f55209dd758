"""Matrix decompositions and linear solvers.

FLOPs are the leading terms, by the usual algorithms: Golub and Van Loan, Matrix Computations, 4th
edition (systems 3.1 and 3.4, Cholesky 4.2, LU 3.2, QR 5.2, eigenvalues 7.5 and 8.3, SVD 8.6);
LAPACK Working Note 41. Iterative algorithms are estimates.
"""

from __future__ import annotations

from collections.abc import Callable

from fastprof.model.call import Tensor
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.table import table_row
from fastprof.ops.tensor import broadcast, elements, fresh, moved, texts


def rows_and_columns(x: Tensor, *, square: bool = False) -> tuple[int, int, int]:
    """Number of matrices in a tensor, and their rows and columns.

    Raises CannotModel when it contains none, or they are not square although required.
    """
    if len(x.shape) < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise CannotModel(f"no {'square ' if square else ''}matrices of {x.shape}")
    return elements(x.shape[:-2]), x.shape[-2], x.shape[-1]


Flops = Callable[[int, int], float]  # of rows and columns, rows no fewer


def _factors(
    x: Tensor, *, flops: Flops, written: int = 1, square: bool = True, iterates: bool = False
) -> Answer:
    # `written` matrices of the size of the one read.
    count, rows, columns = rows_and_columns(x, square=square)
    total = count * round(flops(max(rows, columns), min(rows, columns)))
    return Cost(total, moved(x, *[fresh(x)] * written), not iterates), texts(x)


table_row("""
    A = L L^H of positive definite matrices [.., n, n].
    FLOPs: n^3 / 3 for each matrix.
    Bytes: the matrices read, their factors written.
    (x, ...): cholesky linalg_cholesky linalg_cholesky_ex
""")(_factors, flops=lambda m, n: n**3 / 3)

table_row("""
    A = P L U of matrices [.., m, n], and determinants by it.
    FLOPs: m n^2 - n^3 / 3, n being the smaller size: 2 n^3 / 3 of a square one for each matrix.
    Bytes: the matrices read, their factors written.
    (x, ...): torch.linalg_det torch.det torch.slogdet torch.linalg_slogdet torch.logdet
        torch.lu_factor aten::linalg_lu_factor_ex aten::linalg_ldl_factor_ex aten::_linalg_det
        aten::_linalg_slogdet
""")(_factors, flops=lambda m, n: m * n**2 - n**3 / 3, square=False)

table_row("""
    Inverse of matrices [.., n, n].
    FLOPs: 2 n^3 for each matrix.
    Bytes: the matrices read, their factors written.
    (x, ...): inverse linalg_inv aten::linalg_inv_ex aten::cholesky_inverse
""")(_factors, flops=lambda m, n: 2 * n**3)

table_row("""
    A = Q R of matrices [.., m, n].
    FLOPs: 2 m n^2 - 2 n^3 / 3 for R, as many for Q for each matrix.
    Bytes: the matrices read, their factors written.
    (x, ...): qr geqrf linalg_qr
""")(_factors, flops=lambda m, n: 4 * m * n**2 - 4 * n**3 / 3, written=2, square=False)

table_row("""
    Eigenvalues and vectors of symmetric matrices [.., n, n].
    FLOPs: 9 n^3 for each matrix. An estimate: it iterates.
    Bytes: the matrices read, their factors written.
    (x, ...): torch.eigh torch.eigvalsh torch.linalg_eigh torch.linalg_eigvalsh aten::_linalg_eigh
""")(_factors, flops=lambda m, n: 9 * n**3, iterates=True)

table_row("""
    Eigenvalues and vectors of matrices [.., n, n].
    FLOPs: 25 n^3 for each matrix. An estimate: it iterates.
    Bytes: the matrices read, their factors written.
    (x, ...): torch.eig torch.eigvals torch.linalg_eig torch.linalg_eigvals aten::linalg_eig
""")(_factors, flops=lambda m, n: 25 * n**3, written=2, iterates=True)

table_row("""
    A = U S V^H of matrices [.., m, n], thin.
    FLOPs: 6 m n^2 + 20 n^3 for each matrix. An estimate: it iterates.
    Bytes: the matrices read, their factors written.
    (x, ...): torch.svd torch.svdvals torch.linalg_svd torch.linalg_svdvals aten::_linalg_svd
""")(_factors, flops=lambda m, n: 6 * m * n**2 + 20 * n**3, written=2, square=False, iterates=True)


def _solved(a: Tensor, b: Tensor, *, flops: Flops) -> Answer:
    # FLOPs of n equations and k right sides. B [.., n]: vectors if A has one more dimension.
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


table_row("""
    X of A X = B, A [.., n, n] and B [.., n, k], by A = P L U.
    FLOPs: 2 n^3 / 3 + 2 n^2 k for each matrix.
    Bytes: A and B read, X written.
    (a, b, ...): torch.linalg_solve torch.solve aten::_linalg_solve_ex aten::linalg_solve
        aten::linalg_solve_ex
""")(_solved, flops=lambda n, k: 2 * n**3 / 3 + 2 * n**2 * k)

table_row("""
    X of A X = B, A [.., n, n] triangular and B [.., n, k].
    FLOPs: n^2 k for each matrix.
    Bytes: A and B read, X written.
    (a, b, ...): torch.solve_triangular aten::linalg_solve_triangular
    (b, a, ...): triangular_solve
""")(_solved, flops=lambda n, k: n**2 * k)

table_row("""
    X of A X = B, A [.., n, n] by its factors and B [.., n, k].
    FLOPs: 2 n^2 k for each matrix.
    Bytes: A and B read, X written.
    (b, a, ...): cholesky_solve
    (a, _, b, ...): torch.lu_solve aten::linalg_lu_solve
    (b, a, ...): aten::lu_solve
""")(_solved, flops=lambda n, k: 2 * n**2 * k)
