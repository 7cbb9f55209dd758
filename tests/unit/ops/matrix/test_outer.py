"""Products of vectors, chains of matrices and bilinear forms: FLOPs and bytes."""

from fastprof.model.call import Tensor
from unit.ops.ops_calls import fp32, python
from unit.ops.ops_examples import Rows


def _torch(op, *values):
    return python("torch", op, *values)


V, W = fp32(3), fp32(5)
CHAIN = fp32(10, 100), fp32(100, 5), fp32(5, 50)
# (A B) C takes 10 100 5 + 10 5 50 multiplications, A (B C) 100 5 50 + 10 100 50.
CHAIN_COST = 2 * (10 * 100 * 5 + 10 * 5 * 50), 4 * (1000 + 500 + 250 + 500)
BILINEAR = fp32(7, 3), fp32(7, 5), fp32(4, 3, 5)
rows = Rows(globals())
two = Rows(globals(), "torch", "aten")
EXAMPLES = [
    *two("outer|ger V W", 15, 4 * (3 + 5 + 15)),
    *rows.back("torch.outer V W", 4 * 15, 4 * 2 * (15 + 3 + 5)),
    *rows("outer [3] [5]", 15, None),
    *rows("torch.outer complex64[2] complex64[2]", 6 * 4, 8 * (2 + 2 + 4)),
    *two("kron fp32[2,3] W", 30, 4 * (6 + 5 + 30)),
    *two("addr|addr_ fp32[3,5] V W", 2 * 15, 4 * (15 + 3 + 5 + 15)),
    *rows(
        """cross fp32[4,3] fp32[4,3] -
        linalg_cross fp32[4,3] fp32[4,3] -1
        torch.cross fp32[4,3] fp32[4,3]""",
        *(3 * 12, 4 * 3 * 12),
    ),
    *rows.back("torch.cross fp32[4,3] fp32[4,3]", 2 * 36, 4 * 6 * 12),
    *rows(
        """linalg_vecdot fp32[4,5] fp32[4,5] -1
        torch.linalg.vecdot fp32[4,5] fp32[4,5] dim=1""",
        *(2 * 20, 4 * (20 + 20 + 4)),
    ),
    *rows("linalg_vecdot [4,5] [4,5] []", 2 * 20, None),
    *rows(
        """linalg_multi_dot|chain_matmul|torch.linalg.multi_dot CHAIN
        chain_matmul|torch.functional.chain_matmul *CHAIN""",
        *CHAIN_COST,
    ),
    *rows.back("torch.multi_dot CHAIN", 2 * CHAIN_COST[0], 4 * (2 * 1750 + 500)),
    *rows("torch.multi_dot (V,fp32[3,5],W)", 2 * (15 + 3), 4 * (3 + 15 + 5 + 1)),
    *two("bilinear *BILINEAR", 2 * 7 * 4 * 5 * (3 + 1), 4 * (21 + 35 + 60 + 28)),
    *rows(
        "torch.nn.functional.bilinear *BILINEAR bias=fp32[4]",
        *(1120, 4 * (21 + 35 + 60 + 4 + 28)),
    ),
    *rows.back(
        "torch.bilinear *BILINEAR fp32[4]",
        *(2 * 1120 + 28, 4 * (2 * (21 + 35 + 60) + 28) + 4 * (28 + 4)),
    ),
]


MALFORMED = [
    _torch("outer", fp32(2, 2), V),
    _torch("addr", fp32(4, 5), V, W),
    _torch("cross", fp32(4, 2), fp32(4, 2)),
    _torch("vecdot", fp32(4), fp32(5)),
    _torch("vecdot", fp32(4), fp32(4), 3),
    _torch("multi_dot", (V,)),
    _torch("multi_dot", (fp32(2, 3), fp32(4, 5))),
    _torch("multi_dot", (fp32(2, 3), fp32(3), fp32(3, 5))),
    _torch("multi_dot", tuple([Tensor((1, 1))] * 65)),
    _torch("bilinear", fp32(7, 3), fp32(6, 5), fp32(4, 3, 5)),
    _torch("bilinear", fp32(7, 3), fp32(7, 5), fp32(4, 5, 5)),
    _torch("bilinear", *BILINEAR, fp32(5)),
]
