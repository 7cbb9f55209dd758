"""Tensors: operators, indexing, conversions and in-place results are unchanged by ranges."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")
np = pytest.importorskip("numpy")

from unit.annotate.annotation_outcomes import statement_outcomes

SIGNS = ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"]
COMPARISONS = ["==", "!=", "<", "<=", ">", ">="]
OPERANDS = ["x", "n", "m", "array", "2", "2.5", "True", "np.float64(2)", "thing", "foreign", "None"]
IN_PLACE = """
    r = x.add_(1); same = r is x
    r = torch.relu_(x); same = r is x
    r = F.relu(x, inplace=True); same = r is x
    r = x.copy_(n); same = r is x
    r = x.requires_grad_(); r.add_(1)
    r = torch.add(x, x, out=out); same = r is out
    r = torch.add(x, x, out=n)
    r = torch.max(x, 0, out=(value, index)); same = r.values is value, r.indices is index
    torch._foreach_add_([x, out], 1)
    x.data = out; same = x.data_ptr() == out.data_ptr()
"""
INDEXING = """
    r = m[1]
    r = m[1, 2]
    r = m[-1, ::2]
    r = m[..., 0]
    r = m[None]
    r = m[m > 4]
    r = m[[0, 1], [1, 2]]
    r = m[torch.tensor([True, False])]
    r = m[True]
    r = m[n[0]]
    r = m[array]
    r = m[np.array([1, 0])]
    r = m[7]
    r = m["a"]
    r = m[foreign]
    r = m[0]; m[0] = 7
    m[1, 1:3] = torch.tensor([1, 2])
    m[m == 4] = 0
    m[..., -1] += 1
    m[0] = "text"
    m[9] = 1
    m[:, 0] = array[:2]
    x[0] = n[1]
    del m[0]
"""
CONVERSIONS = """
    r = float(value), int(value), bool(value), complex(value)
    r = float(x)
    r = bool(x)
    r = value.item(), x.tolist(), n[1].__index__()
    r = x.__index__()
    r = [10, 20, 30][n[1]], list(range(n[1])), "ab" * n[1]
    r = f"{value:.2f}", repr(x), str(n), f"{x}", format(value, ">9")
    r = f"{x:.2f}"
    r = len(m), len(x)
    r = len(value)
    r = [*m], [*reversed(m)], [*zip(x, n)]
    r = iter(value)
    a, b, c = x
    a, b = x
    r = 3 in m, 99 in m
    r = thing in m
    r = hash(x) == id(x), {x: 1}[x]
    r = np.asarray(x), np.add(n, 1), np.sin(x), np.sum(m)
    r = torch.from_numpy(array), torch.as_tensor(array), torch.tensor(array)
    r = x.numpy(); x += 1
    r = divmod(7.0, value)
    r = round(value, 1), abs(x), -x, +x, ~n, ~x
    r = math.floor(value), math.sqrt(value)
    r = sum([x, x]), max(x), sorted(x)
    r = bool(torch.tensor([])), bool(torch.tensor([[1]]))
    r = x.size(), x.shape, x.stride(), x.dtype, x.device, x.is_contiguous(), x.type()
    r = [each for each in dir(x) if not each.startswith("__")]
    r = x.no_such_attribute
    r = torch.no_such_function
"""
METHODS = """
    r = x.add; r = r(1), r.__self__ is x, r.__name__, repr(torch.Tensor.add)
    r = torch.Tensor.add(x, 1), list(map(torch.Tensor.item, x))
    r = torch.Tensor.add()
    r = torch.Tensor.add(3, x)
    r = x.add()
    r = x.add(1, 2, 3)
    r = x.add(other=1, alpha=2)
    r = x.add(1, no_such_argument=2)
    r = torch.add(input=x, other=x)
    r = torch.Tensor.__add__(x, thing), x.__eq__(thing), x.__lt__(thing)
    r = torch.Tensor.__radd__(x, 2), x.__rsub__(2), x.__rpow__(2), x.__rmatmul__(x)
    r = getattr(x, "sum")(), operator.methodcaller("sum", 0)(m)
    r = type(x).relu(x), super(torch.Tensor, x).add(1)
    r = F.linear(x, x.expand(2, 3)), F.linear(x)
    r = F.relu(x, no_such_argument=1)
    r = F.conv2d(x, x)
    r = torch.mm(x, x)
    r = torch.cat([x, n]), torch.stack([x, out]), torch.cat([])
    r = torch.zeros(2, 3), torch.ones((2,), dtype=torch.int8), torch.full((2,), 3), torch.eye(2)
    r = torch.arange(3), torch.tensor([1, 2.0]), torch.linspace(0, 1, 3), torch.empty(0)
    r = torch.rand(3), torch.randn(2), torch.randint(5, (4,)), torch.randperm(5), x.uniform_()
    r = torch.max(m, 1), torch.linalg.svd(m.float()), torch.fft.fft(x), torch.special.i0(x)
"""


class Foreign:
    """Supports operators with any operand."""

    def _told(self, other):
        return "foreign", type(other).__name__

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _told
    __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = __rmatmul__ = _told
    __add__ = __sub__ = __mul__ = __matmul__ = _told
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _told
    __hash__ = None

    def __index__(self):
        return 1


def names():
    import math
    import operator

    return {
        "torch": torch,
        "F": torch.nn.functional,
        "np": np,
        "math": math,
        "operator": operator,
        "x": torch.tensor([0.5, -1.5, 2.0]),
        "n": torch.tensor([0, 2, 5]),
        "m": torch.arange(6).reshape(2, 3),
        "array": np.array([2.0, 4.0, 0.5]),
        "out": torch.empty(3).fill_(9),
        "value": torch.tensor(2.5),
        "index": torch.tensor(0),
        "thing": object(),
        "foreign": Foreign(),
    }


def assert_unchanged(statements):
    plain, *annotated = statement_outcomes(statements, names)
    for result in annotated:
        for statement in statements:
            assert result[statement] == plain[statement], statement


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("sign", [*SIGNS, *COMPARISONS])
def test_signs_with_operands_of_all_kinds_on_both_sides(sign):
    statements = [f"r = {left} {sign} {right}" for left in ("x", "n") for right in OPERANDS]
    statements += [f"r = {left} {sign} {right}" for left in OPERANDS for right in ("x", "n")]
    assert_unchanged(statements)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("sign", SIGNS)
def test_signs_in_place_leave_the_same_tensor(sign):
    statements = [
        f"before = {left}; {left} {sign}= {right}; same = {left} is before"
        for left in ("x", "n")
        for right in OPERANDS
    ]
    assert_unchanged(statements)


def test_what_works_in_place_returns_the_tensor_and_out_is_filled():
    assert_unchanged(lines(IN_PLACE))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_indexing_reads_writes_and_refuses():
    assert_unchanged(lines(INDEXING))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_conversions_containers_and_texts():
    assert_unchanged(lines(CONVERSIONS))


def test_methods_and_functions_take_and_refuse_arguments():
    assert_unchanged(lines(METHODS))
