"""Products of vectors, chains of matrices and bilinear forms: FLOPs and bytes."""

from fastprof.model.call import Tensor
from unit.ops.ops_examples import Example, aten, fp32, python, sizes, tensor


def _torch(op, *values):
    return python("torch", op, *values)


V, W = fp32(3), fp32(5)
CHAIN = fp32(10, 100), fp32(100, 5), fp32(5, 50)
# (A B) C takes 10 100 5 + 10 5 50 multiplications, A (B C) 100 5 50 + 10 100 50.
CHAIN_COST = 2 * (10 * 100 * 5 + 10 * 5 * 50), 4 * (1000 + 500 + 250 + 500)
BILINEAR = fp32(7, 3), fp32(7, 5), fp32(4, 3, 5)
EXAMPLES = [
    *(
        Example(each(name, V, W), 15, 4 * (3 + 5 + 15))
        for each in (aten, _torch)
        for name in ("outer", "ger")
    ),
    Example(_torch("outer", V, W), 4 * 15, 4 * 2 * (15 + 3 + 5), None, "bprop"),
    Example(sizes("outer", (3,), (5,)), 15, None),
    Example(_torch("outer", *[tensor("complex64", 2)] * 2), 6 * 4, 8 * (2 + 2 + 4)),
    *(Example(each("kron", fp32(2, 3), W), 30, 4 * (6 + 5 + 30)) for each in (aten, _torch)),
    *(
        Example(each(name, fp32(3, 5), V, W), 2 * 15, 4 * (15 + 3 + 5 + 15))
        for each in (aten, _torch)
        for name in ("addr", "addr_")
    ),
    *(
        Example(each, 3 * 12, 4 * 3 * 12)
        for each in (
            aten("cross", fp32(4, 3), fp32(4, 3), None),
            aten("linalg_cross", fp32(4, 3), fp32(4, 3), -1),
            _torch("cross", fp32(4, 3), fp32(4, 3)),
        )
    ),
    Example(_torch("cross", fp32(4, 3), fp32(4, 3)), 2 * 36, 4 * 6 * 12, None, "bprop"),
    *(
        Example(each, 2 * 20, 4 * (20 + 20 + 4))
        for each in (
            aten("linalg_vecdot", fp32(4, 5), fp32(4, 5), -1),
            python("torch.linalg", "vecdot", fp32(4, 5), fp32(4, 5), dim=1),
        )
    ),
    Example(sizes("linalg_vecdot", (4, 5), (4, 5), ()), 2 * 20, None),
    *(
        Example(each, *CHAIN_COST)
        for each in (
            aten("linalg_multi_dot", CHAIN),
            aten("chain_matmul", CHAIN),
            aten("chain_matmul", *CHAIN),
            python("torch.linalg", "multi_dot", CHAIN),
            python("torch.functional", "chain_matmul", *CHAIN),
        )
    ),
    Example(_torch("multi_dot", CHAIN), 2 * CHAIN_COST[0], 4 * (2 * 1750 + 500), None, "bprop"),
    Example(_torch("multi_dot", (V, fp32(3, 5), W)), 2 * (15 + 3), 4 * (3 + 15 + 5 + 1)),
    *(
        Example(each("bilinear", *BILINEAR), 2 * 7 * 4 * 5 * (3 + 1), 4 * (21 + 35 + 60 + 28))
        for each in (aten, _torch)
    ),
    Example(
        python("torch.nn.functional", "bilinear", *BILINEAR, bias=fp32(4)),
        1120,
        4 * (21 + 35 + 60 + 4 + 28),
    ),
    Example(
        _torch("bilinear", *BILINEAR, fp32(4)),
        2 * 1120 + 28,
        4 * (2 * (21 + 35 + 60) + 28) + 4 * (28 + 4),
        None,
        "bprop",
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
