"""Einsum, tensordot and inner: FLOPs and bytes of torch's matrix products."""

from fastprof.ops import why_unknown, work
from fastprof.ops.matrix.einsum import contract
from unit.ops.ops_calls import aten, fp32, python, sizes, tensor
from unit.ops.ops_examples import Example, Rows


def einsum(equation, *operands):
    return python("torch.functional", "einsum", equation, *operands)


A, B, C = fp32(2, 3), fp32(3, 5), fp32(5, 7)
PLAIN = 2 * 2 * 5 * 3, 4 * (6 + 15 + 10)
PAIR = fp32(2, 3, 5), fp32(3, 5, 7)
rows = Rows(globals())
EXAMPLES = [
    *(
        Example(each, *PLAIN, "M=5,N=2,K=3,fp32,")
        for each in (
            einsum("ij,jk->ik", A, B),
            einsum("ij, jk -> ik", A, B),
            einsum("ij,jk", A, B),
            einsum("ij,jk->ik", (A, B)),
            python("torch", "einsum", "ij,jk->ik", A, B),
            aten("einsum", "ij,jk->ik", (A, B), None),
            aten("einsum", "ij,jk->ik", A, B, ()),
        )
    ),
    Example(einsum("ij,jk->ik", A, B), 2 * PLAIN[0], 2 * PLAIN[1], None, "bprop"),
    Example(
        einsum("bhqd,bhkd->bhqk", fp32(2, 4, 8, 16), fp32(2, 4, 9, 16)),
        2 * 8 * 8 * 9 * 16,
        4 * (8 * 8 * 16 + 8 * 9 * 16 + 8 * 8 * 9),
        "B=8,M=9,N=8,K=16,fp32,",
    ),
    # An ellipsis broadcasts; a label of a single operand is summed first.
    Example(einsum("...ij,jk->...ik", fp32(4, 2, 3), B), 4 * 60, 4 * (24 + 15 + 40)),
    Example(einsum("ijz,jk->ik", fp32(2, 3, 9), B), 60, 4 * (54 + 15 + 10)),
    # (A B) C, or A (B C) by a path.
    Example(einsum("ij,jk,kl->il", A, B, C), 2 * (30 + 70), 4 * (6 + 15 + 35 + 14)),
    Example(
        aten("einsum", "ij,jk,kl->il", (A, B, C), (1, 2, 0, 1)),
        2 * (105 + 42),
        4 * (6 + 15 + 35 + 14),
    ),
    Example(einsum("ij,jk,kl->il", A, B, C), 2 * 2 * 100, 4 * (2 * 56 + 14), None, "bprop"),
    # Without a summed label, one multiplication per element.
    Example(einsum("i,j->ij", fp32(3), fp32(5)), 15, 4 * (3 + 5 + 15)),
    Example(einsum("ij,ij->ij", A, A), 6, 4 * 18),
    # One operand: a permutation is a view, a sum is one addition per element.
    Example(einsum("ij->ji", A), 0, 0),
    Example(einsum("ij->j", A), 6, 4 * (6 + 3)),
    Example(einsum("ii->", fp32(4, 4)), 4, 4 * (4 + 1)),
    Example(einsum("ij->j", A), 0, 4 * (6 + 3), None, "bprop"),
    Example(einsum("ij,jk->ik", *[tensor("complex64", 2, 2)] * 2), 8 * 8, 8 * 12),
    *rows(
        """torch.tensordot *PAIR
        torch.functional.tensordot *PAIR dims=2
        torch.tensordot *PAIR ((1,2),(0,1))
        tensordot|torch.tensordot *PAIR (1,2) (0,1)
        torch.tensordot *PAIR ((-2,-1),(0,1))""",
        *(2 * 2 * 7 * 15, 4 * (30 + 105 + 14)),
    ),
    # A dimension of size 1 in one operand: the other is summed along it.
    Example(python("torch", "tensordot", fp32(2, 1), fp32(3, 5), 1), 2 * 2 * 5, 4 * (2 + 15 + 10)),
    Example(python("torch", "tensordot", A, B, 1), 2 * PLAIN[0], 2 * PLAIN[1], None, "bprop"),
    *rows("inner|torch.inner fp32[4,2,3] fp32[5,3]", 4 * 60, 4 * (24 + 15 + 40)),
    Example(sizes("inner", (4, 2, 3), (5, 3)), 4 * 60, None),
    Example(python("torch", "inner", A, fp32()), 6, 4 * (6 + 1 + 6)),
]


def test_without_the_equation_nothing_is_known():
    assert "not in the capture" in why_unknown(sizes("einsum", (), (2, 3), (3, 5), ()), "fprop")
    assert "not in the capture" in why_unknown(sizes("tensordot", (2, 3), (3, 5), (), ()), "fprop")


def test_three_operands_without_a_path_are_an_estimate():
    assert not work(einsum("ij,jk,kl->il", A, B, C), "fprop").cost.exact
    known = aten("einsum", "ij,jk,kl->il", (A, B, C), (0, 1, 0, 1))
    assert work(known, "fprop").cost.exact


def test_a_label_that_is_kept_is_a_batch():
    done = contract("bij,bjk->bik", [(4, 2, 3), (4, 3, 5)])
    assert (done.shape, done.products) == ((4, 2, 5), [(4, 2, 5, 3)])


MALFORMED = [
    einsum("ij,jk->ik", A),
    einsum("ij,jk->ik", A, fp32(4, 5)),
    einsum("ij,jk->iz", A, B),
    einsum("ij,jk->ii", A, B),
    einsum("ijk,jk->ik", A, B),
    einsum("ii,jk->ik", A, B),
    einsum("i1,1k->ik", A, B),
    einsum("", A, B),
    einsum("..i..,jk->ik", A, B),
    aten("einsum", "ij,jk,kl->il", (A, B, C), (0, 1)),
    aten("einsum", "ij,jk,kl->il", (A, B, C), (0, 7, 0, 1)),
    aten("einsum", "ij,jk,kl->il", (A, B, C), (1, 1, 0, 1)),
    python("torch", "tensordot", A, B, 3),
    python("torch", "tensordot", A, B, 2),
    python("torch", "tensordot", A, B, ((1, 1), (0, 0))),
    python("torch", "tensordot", A, B, ((1,), (0, 1))),
    python("torch", "tensordot", A, B, ((5,), (0,))),
    python("torch", "inner", A, fp32(5, 4)),
]
