"""Indexing and masks against torch: every overload is read, and counts match torch's."""

import random

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from unit.ops.ops_examples import cost  # noqa: E402
from unit.ops.overload_calls import run  # noqa: E402

MODULES = ("indexing.advanced", "indexing.sorting")
random.seed(7)
X = torch.randn(4, 6)
INDEX = torch.zeros(3, 2, dtype=torch.int64)
ROWS = torch.tensor([0, 3, 3])
SOURCE = torch.randn(3, 2)
MASK = torch.randn(4, 6) > 0

# Bytes are those of index and masks, and of the output twice: picked, written.
PICKED = [
    ("gather", (X, 1, INDEX), {}),
    ("gather", (X.half(), 0, INDEX), {"sparse_grad": False}),
    ("take", (X, INDEX), {}),
    ("take_along_dim", (X, ROWS.view(3, 1), 0), {}),
    ("take_along_dim", (X, INDEX), {}),
    ("index_select", (X, 0, ROWS), {}),
    ("index_select", (X, -1, ROWS), {}),
    ("index.Tensor", (X, [ROWS]), {}),
    ("index.Tensor", (X, [None, ROWS]), {}),
    ("index.Tensor", (X, [ROWS, ROWS.view(3, 1)]), {}),
    ("_unsafe_index.Tensor", (X, [ROWS, ROWS]), {}),
    ("_unsafe_masked_index", (X, MASK[:3, :1], [ROWS], 0), {}),
]
# Bytes are those of inputs and outputs.
READ_AND_WRITTEN = [
    ("scatter.src", (X, 0, INDEX, SOURCE), {}),
    ("scatter.value", (X, 0, INDEX, 2.0), {}),
    ("scatter.reduce", (X, 0, INDEX, SOURCE), {"reduce": "add"}),
    ("scatter.value_reduce", (X, 0, INDEX, 2.0), {"reduce": "multiply"}),
    ("scatter_add", (X, 1, INDEX, SOURCE), {}),
    ("scatter_reduce.two", (X, 0, INDEX, SOURCE, "amax"), {}),
    ("scatter_reduce.two", (X, 0, INDEX, SOURCE, "mean"), {"include_self": False}),
    ("index_add", (X, 0, ROWS, X[:3]), {"alpha": 2}),
    ("index_copy", (X, 1, ROWS, X[:, :3]), {}),
    ("index_reduce", (X, 0, ROWS, X[:3], "prod"), {}),
    ("index_fill.int_Scalar", (X, 0, ROWS, 2.0), {}),
    ("put", (X, INDEX, SOURCE, True), {}),
    ("index_put", (X, [ROWS, ROWS], X[0, :3]), {}),
    ("index_put", (X, [ROWS], X[0], True), {}),
    ("_unsafe_index_put", (X, [ROWS], X[:3]), {}),
    ("_index_put_impl", (X, [ROWS], X[:3], True), {}),
    ("_unsafe_masked_index_put_accumulate", (X, MASK[0, :3], [ROWS, ROWS], torch.randn(3)), {}),
    ("masked_fill.Scalar", (X, MASK, 0.0), {}),
    ("masked_fill.Scalar", (X[0], MASK, 0.0), {}),
    ("masked_scatter", (X, MASK, X), {}),
    ("index_select_backward", (X[:3], [4, 6], 0, ROWS), {}),
    ("nonzero_static", (X,), {"size": 5}),
]
OTHERS = [
    ("masked_select_backward", (torch.randn(int(MASK.sum())), X, MASK), {}),
    ("gather_backward", (SOURCE, X, 1, INDEX, False), {}),
    ("masked_scatter_backward", (X, MASK, [24]), {}),
    ("masked_fill.Tensor", (X, MASK, torch.tensor(0.0)), {}),
    ("masked_fill_.Scalar", (X.clone(), MASK, 0.0), {}),
    ("masked_scatter_", (X.clone(), MASK, X), {}),
    ("masked_select", (X, MASK), {}),
    ("nonzero", (X,), {}),
    ("nonzero_numpy", (X,), {}),
    ("argwhere", (X,), {}),
    ("scatter_.src", (X.clone(), 0, INDEX, SOURCE), {}),
    ("scatter_.value", (X.clone(), 0, INDEX, 1.0), {}),
    ("scatter_.reduce", (X.clone(), 0, INDEX, SOURCE), {"reduce": "multiply"}),
    ("scatter_add_", (X.clone(), 0, INDEX, SOURCE), {}),
    ("scatter_reduce_.two", (X.clone(), 0, INDEX, SOURCE, "sum"), {}),
    ("scatter.src_out", (X, 0, INDEX, SOURCE), {"out": torch.empty(4, 6)}),
    ("index_add_", (X.clone(), 0, ROWS, X[:3]), {}),
    ("index_copy_", (X.clone(), 0, ROWS, X[:3]), {}),
    ("index_reduce_", (X.clone(), 0, ROWS, X[:3], "amin"), {}),
    ("index_fill_.int_Scalar", (X.clone(), 0, ROWS, 2.0), {}),
    ("index_fill.int_Tensor", (X, 0, ROWS, torch.tensor(2.0)), {}),
    ("put_", (X.clone(), INDEX, SOURCE), {}),
    ("index_put_", (X.clone(), [ROWS, ROWS], X[0, :3]), {}),
    ("index_put_", (X.clone(), [MASK], torch.tensor(1.0)), {}),
    ("index_put_", (X.clone(), [None, ROWS], torch.tensor([1.0]), True), {}),
    ("_index_put_impl_", (X.clone(), [ROWS], X[:3], True, True), {}),
    ("index.Tensor", (X, [MASK]), {}),
    ("gather.out", (X, 1, INDEX), {"out": torch.empty(3, 2)}),
]
CASES = PICKED + READ_AND_WRITTEN + OTHERS


@pytest.mark.parametrize("case", PICKED, ids=lambda case: case[0])
def test_picked_elements_are_read_and_written_and_the_rest_is_not(case):
    done = run(case)
    assert cost(done.call).bytes == done.read - case[1][0].nbytes + 2 * done.written


BACKWARD = [
    lambda t: t[ROWS],
    lambda t: t[MASK],
    lambda t: t.gather(0, INDEX),
    lambda t: t.index_select(1, ROWS),
    lambda t: t.masked_select(MASK),
    lambda t: t.masked_fill(MASK, 0.0),
    lambda t: t.scatter(0, INDEX, SOURCE),
    lambda t: t.take(INDEX),
]
OF_BACKWARD = {"index_put", "index_add", "scatter", "masked_fill"}


PYTHON = [
    (lambda: X[0], 0, 0),
    (lambda: X[1:3, None, 2], 0, 0),
    (lambda: X[..., ::2], 0, 0),
    (lambda: X[ROWS], 0, 24 + 2 * 72),
    (lambda: X[ROWS, 1:4], 0, 24 + 2 * 36),
    (lambda: X[..., ROWS], 0, 24 + 2 * 48),
    (lambda: X[ROWS, ROWS], 0, 48 + 2 * 12),
    (lambda: X[[0, 2], :], 0, 2 * 48),
    (lambda: X[MASK], 0, None),
    (lambda: X.clone().__setitem__(0, 1.0), 0, 24),
    (lambda: X.clone().__setitem__(slice(0, 2), X[:2]), 0, 96),
    (lambda: X.clone().__setitem__(ROWS, X[:3]), 0, 24 + 2 * 72),
    (lambda: X.clone().__setitem__(MASK, 0.0), 0, 24 + 2 * 96),
    (lambda: torch.gather(X, dim=1, index=INDEX), 0, 48 + 48),
    (lambda: X.index_select(0, index=ROWS), 0, 24 + 2 * 72),
    (lambda: X.clone().scatter_(0, INDEX, 1.0), 0, 48 + 24),
    (lambda: X.clone().scatter_(0, INDEX, value=1.0), 0, 48 + 24),
    (lambda: X.clone().scatter_(0, INDEX, SOURCE, reduce="add"), 6, 48 + 24 + 48),
    (lambda: X.scatter_add(0, INDEX, src=SOURCE), 6, 192 + 48 + 24),
    (lambda: X.clone().index_add_(0, ROWS, X[:3], alpha=2), 18, 24 + 3 * 72),
    (lambda: X.clone().index_put_((ROWS, ROWS), X[0, :3], accumulate=True), 3, 48 + 3 * 12),
    (lambda: X.clone().index_fill_(0, ROWS, 2.0), 0, 24 + 72),
    (lambda: X.masked_fill(MASK, 0.0), 0, 192 + 24),
    (lambda: X.masked_scatter(MASK, source=X), 0, 192 + 24 + 96),
    (lambda: torch.masked_select(X, MASK), 0, None),
    (lambda: torch.nonzero(X, as_tuple=True), 24, None),
    (lambda: X.take(INDEX), 0, 48 + 48),
    (lambda: X.clone().put_(INDEX, SOURCE, accumulate=True), 6, 48 + 3 * 24),
]
