"""Sorting and searching against torch: every overload is read, and bytes are what torch moves."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")

MODULES = ("indexing.advanced", "indexing.sorting")
X = torch.randn(5, 7)
NUMBERS = torch.randint(0, 9, (6,))
EDGES = torch.arange(3.0)

READ_AND_WRITTEN = [
    ("sort", (X,), {}),
    ("sort", (NUMBERS, 0, True), {}),
    ("sort.stable", (X,), {"stable": True, "dim": 0}),
    ("sort.stable", (X,), {"stable": None}),
    ("argsort", (X,), {}),
    ("argsort.stable", (X,), {"stable": True, "dim": 0}),
    ("topk", (X, 3), {}),
    ("topk", (X.half(), 2, 0, False), {}),
    ("kthvalue", (X, 3), {}),
    ("kthvalue", (X, 3, 0, True), {}),
    ("median", (X,), {}),
    ("median.dim", (X, 1), {}),
    ("nanmedian", (X,), {}),
    ("nanmedian.dim", (X, 0, True), {}),
    ("mode", (X,), {}),
    ("quantile", (X, torch.tensor([0.1, 0.5])), {"dim": 1}),
    ("searchsorted.Tensor", (EDGES, X), {}),
    ("searchsorted.Tensor", (EDGES, X), {"out_int32": True}),
    ("searchsorted.Scalar", (EDGES, 3.5), {}),
    ("bucketize.Tensor", (X, EDGES), {"out_int32": True, "right": True}),
    ("bucketize.Scalar", (2.5, EDGES), {}),
    ("isin.Tensor_Tensor", (NUMBERS, NUMBERS), {}),
    ("isin.Tensor_Scalar", (NUMBERS, 3), {}),
    ("isin.Scalar_Tensor", (3, NUMBERS), {}),
    ("histc", (X, 20), {}),
]
OTHERS = [
    ("msort", (X,), {}),
    ("quantile.scalar", (X, 0.5), {}),
    ("nanquantile.scalar", (X, 0.5, 0), {}),
    ("nanquantile", (X, torch.tensor(0.5), 0), {}),
    ("_unique2", (NUMBERS,), {}),
    ("_unique", (NUMBERS, True, True), {}),
    ("unique_dim", (X, 0), {}),
    ("unique_consecutive", (NUMBERS,), {}),
    ("unique_dim_consecutive", (X, 0), {}),
    ("bincount", (NUMBERS,), {}),
    ("bincount", (NUMBERS, torch.rand(6), 12), {}),
    ("sort.values", (X,), {"values": torch.empty(5, 7), "indices": torch.empty(5, 7).long()}),
]
CASES = READ_AND_WRITTEN + OTHERS


PYTHON = [
    (lambda: X.sort(), 35 * 3, 140 + 140 + 280),
    (lambda: torch.sort(X, 0, descending=True), 35 * 3, 140 + 140 + 280),
    (lambda: torch.argsort(X, dim=1, stable=True), 35 * 3, 140 + 280),
    (lambda: torch.topk(X, k=2), 35, 140 + 10 * 12),
    (lambda: X.topk(3, dim=0, largest=False), 35, 140 + 21 * 12),
    (lambda: X.kthvalue(2), 35, 140 + 5 * 12),
    (lambda: torch.median(X, dim=0), 35, 140 + 7 * 12),
    (lambda: torch.quantile(X, 0.5, dim=1), 35 * 3 + 5 * 3, 140 + 4 + 20),
    (lambda: torch.searchsorted(EDGES, X, right=True), 35 * 2, 12 + 140 + 280),
    (lambda: torch.bucketize(X, boundaries=EDGES), 35 * 2, 12 + 140 + 280),
    (lambda: torch.unique(NUMBERS, return_counts=True), 6 * 3 + 6, None),
    (lambda: NUMBERS.unique_consecutive(), 6, None),
    (lambda: torch.bincount(NUMBERS, minlength=3), 6, None),
    (lambda: torch.histc(X, bins=4, min=0, max=1), 140, 140 + 16),
    (lambda: torch.isin(NUMBERS, NUMBERS), 36, 48 + 48 + 6),
]
