"""Decompositions of matrices: FLOPs by the usual leading terms, bytes by hand."""

from fastprof.ops import work
from unit.ops.ops_calls import aten, fp32, python
from unit.ops.ops_examples import Example

A, B, TALL = fp32(2, 30, 30), fp32(2, 30, 5), fp32(2, 40, 30)
N3, ONE = 30**3, 4 * 1800
QR = 2 * (4 * 40 * 900 - 4 * N3 // 3)
SVD = 2 * (6 * 40 * 900 + 20 * N3)


def both(aten_names: str, torch_names: str, flops: int, moved: int, *values: object) -> list:
    return [
        *(Example(aten(name, *values), flops, moved) for name in aten_names.split()),
        *(
            Example(python("torch.linalg", name, *values), flops, moved)
            for name in torch_names.split()
        ),
    ]


EXAMPLES = [
    *both(
        "linalg_cholesky_ex linalg_cholesky cholesky",
        "cholesky linalg_cholesky linalg_cholesky_ex",
        2 * N3 // 3,
        2 * ONE,
        A,
    ),
    *both(
        "linalg_lu_factor_ex linalg_ldl_factor_ex _linalg_det _linalg_slogdet",
        "det linalg_det slogdet linalg_slogdet logdet lu_factor",
        2 * 2 * N3 // 3,
        2 * ONE,
        A,
    ),
    *both(
        "linalg_inv_ex linalg_inv inverse cholesky_inverse",
        "inverse linalg_inv",
        4 * N3,
        2 * ONE,
        A,
    ),
    *both("linalg_qr geqrf qr", "qr geqrf linalg_qr", QR, 3 * 4 * 2400, TALL),
    *both("_linalg_eigh", "eigh eigvalsh linalg_eigh linalg_eigvalsh", 18 * N3, 2 * ONE, A),
    *both("linalg_eig", "eig eigvals linalg_eig linalg_eigvals", 50 * N3, 3 * ONE, A),
    *both("_linalg_svd", "svd svdvals linalg_svd linalg_svdvals", SVD, 3 * 4 * 2400, TALL),
    Example(aten("_linalg_svd", fp32(2, 30, 40), False, True), SVD, 3 * 4 * 2400),
    *both(
        "_linalg_solve_ex linalg_solve linalg_solve_ex",
        "solve linalg_solve",
        2 * (2 * N3 // 3 + 2 * 900 * 5),
        ONE + 2 * 4 * 300,
        *(A, B),
    ),
    Example(aten("_linalg_solve_ex", A, fp32(2, 30)), 2 * (2 * N3 // 3 + 1800), ONE + 2 * 4 * 60),
    *both("linalg_solve_triangular", "solve_triangular", 2 * 900 * 5, ONE + 2400, A, B),
    *both("triangular_solve", "triangular_solve", 2 * 900 * 5, ONE + 2400, B, A),
    *both("cholesky_solve lu_solve", "cholesky_solve", 4 * 900 * 5, ONE + 2400, B, A),
    *both("linalg_lu_solve", "lu_solve", 4 * 900 * 5, ONE + 2400, A, None, B),
]


MALFORMED = [
    aten("linalg_cholesky_ex", TALL, False, False),
    aten("linalg_inv_ex", fp32(30)),
    aten("_linalg_solve_ex", A, fp32(2, 29, 5)),
    aten("linalg_solve_triangular", TALL, B),
]


def test_what_iterates_is_an_estimate() -> None:
    exact = {}
    for example in EXAMPLES:
        done = work(example.call, "fprop")
        exact[example.call.op] = done is not None and done.cost.exact
    assert not any(exact[name] for name in ("_linalg_svd", "_linalg_eigh", "linalg_eig"))
    assert all(exact[name] for name in ("linalg_cholesky_ex", "linalg_inv_ex", "_linalg_solve_ex"))
