"""Tensors of all kinds: fake, meta, sparse, complex, quantized, nested, masked, distributed."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from unit.annotate.annotation_outcomes import outcomes

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class Ops(TorchDispatchMode):
    """The dispatched operators."""

    def __init__(self):
        super().__init__()
        self.log = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.log.append(str(func))
        return func(*args, **(kwargs or {}))


class Wrapper(torch.Tensor):
    """Wraps a tensor and records dispatched operators; sizes are computed in Python."""

    log: list = []  # noqa: RUF012

    @staticmethod
    def __new__(cls, held, policy=None):
        return torch.Tensor._make_wrapper_subclass(
            cls, held.shape, dtype=held.dtype, dispatch_sizes_strides_policy=policy
        )

    def __init__(self, held, policy=None):
        self.held = held

    def __repr__(self):
        return f"Wrapper({self.held})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        Wrapper.log.append(str(func))
        args, kwargs = tree_map(lambda x: x.held if isinstance(x, cls) else x, (args, kwargs or {}))
        result = func(*args, **kwargs)
        return tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, result)


@program
def meta():
    model = nn.Linear(4, 2, device="meta")
    y = functional.relu(model(torch.ones(3, 4, device="meta")))
    return y.shape, y.device, model.to_empty(device="cpu").weight.shape


@program
def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        y = torch.add(torch.ones(2, 3), 1) @ torch.ones(3, 4)
        y = functional.softmax(nn.Linear(4, 2)(y), 0)
        other = mode.from_tensor(torch.ones(2)) * 2
        return y.shape, type(y).__name__, other.shape, y[0].stride()


@program
def sparse():
    x = torch.eye(3).to_sparse()
    csr = torch.eye(3).to_sparse_csr()
    return x + x, torch.sparse.mm(x, torch.ones(3, 2)), csr @ torch.ones(3), x.coalesce().values()


@program
def complex_and_conjugated():
    x = torch.tensor([1 + 2j, 3 - 1j])
    return x.conj(), x.conj().is_conj(), x.abs(), torch.view_as_real(x), x.real, x * 2j, x[None].H


@program
def quantized():
    x = torch.quantize_per_tensor(torch.linspace(0, 1, 4), 0.1, 0, torch.quint8)
    return x, x.dequantize(), x.int_repr(), x.q_scale(), functional.relu(x)


@program
def nested_jagged():
    x = torch.nested.nested_tensor([torch.ones(2, 8), torch.ones(3, 8)], layout=torch.jagged)
    y = nn.Linear(8, 8)(x)
    q = y.unflatten(-1, [2, 4]).transpose(1, 2)
    attended = functional.scaled_dot_product_attention(q, q, q)
    return y.values(), attended.transpose(1, 2).flatten(-2).values(), (x + 1).values(), x.size(0)


@program
def nested_strided():
    x = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)])
    return [*nn.Linear(4, 2)(x).unbind()], x.to_padded_tensor(0.0), torch.relu(x).unbind()


@program
def masked():
    from torch.masked import masked_tensor

    x = masked_tensor(torch.arange(4.0), torch.tensor([True, False, True, True]))
    total = torch.sum(x)
    return (x + x).get_data(), total.get_data(), torch.sin(x).get_mask(), x.mean().get_data()


@program
def parameters_and_buffers():
    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))
            self.count = nn.Buffer(torch.zeros(1))

    model = Holds()
    model.count += 1
    kinds = type(model.weight * 2), type(model.weight.data), type(model.weight.clone())
    return [*model.state_dict().items()], kinds, model.half().weight, model.to(torch.float64).count


@program
def lazy_modules():
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyBatchNorm1d())
    model.half().to(torch.float32)
    before = [type(p).__name__ for p in model.parameters()]
    try:
        model[0].weight + 1
    except ValueError as error:
        refusal = str(error)
    y = model(torch.ones(2, 4))
    other = nn.LazyLinear(3)
    other.load_state_dict(model[0].state_dict())
    return y, before, refusal, other.weight, type(other.weight).__name__


@program
def wrappers_by_dispatch():
    result = []
    for policy in (None, "sizes"):
        Wrapper.log.clear()
        x = Wrapper(torch.ones(2, 3), policy)
        y = functional.relu(torch.add(x, 1) @ torch.ones(3, 2)).sum()
        # Sizes computed in Python are requested: this cannot be detected beforehand.
        result += [y.held, [each for each in Wrapper.log if not (policy and "sym_size" in each)]]
    return result


@program
def two_tensors():
    from torch.testing._internal.two_tensor import TwoTensor

    x = TwoTensor(torch.ones(2, 2), torch.zeros(2, 2))
    y = nn.functional.gelu(torch.mm(x, x) + 1)
    return y.a, y.b, type(y)


@program
def dispatched_operators():
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.LSTM(4, 2))
    optimizer = torch.optim.Adam(model.parameters())
    with Ops() as ops:
        x = torch.ones(3, 4)
        y = model(x)[0]
        loss = functional.cross_entropy(y, torch.tensor([0, 1, 0])) * torch.tensor(2.0)
        loss = loss + torch.where(y > 0, y, torch.zeros(())).sum() + x[torch.tensor(1)].sum()
        loss.backward()
        optimizer.step()
        torch.clamp(x, min=torch.tensor(0.5), max=torch.tensor(2.0))
        x[torch.tensor(0) : torch.tensor(2), :: torch.tensor(2)]
        x.mul_(torch.tensor(3.0, dtype=torch.float64))
        torch.cat([x, x]).to(torch.float16).masked_fill(torch.tensor(True), 1.0)
    return ops.log


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_tensors_of_all_kinds_compute_the_same(name):
    plain, *annotated = outcomes(PROGRAMS[name])
    for result in annotated:
        assert result == plain
    assert "Error" not in str(plain[0]), plain


@pytest.fixture
def mesh():
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
def test_distributed_tensors_compute_the_same(mesh):
    from torch.distributed.tensor import DTensor, Shard, distribute_module, distribute_tensor

    def program():
        x = distribute_tensor(torch.ones(4, 2), mesh, [Shard(0)])
        weight = distribute_tensor(torch.ones(3, 2, requires_grad=True), mesh, [Shard(0)])
        y = functional.relu(functional.linear(x, weight))
        y.sum().backward()
        model = distribute_module(nn.Linear(2, 2), mesh)
        z = model(x)
        assert isinstance(y, DTensor)
        return y.to_local(), weight.grad.to_local(), z.full_tensor(), str(y.placements)

    plain, *annotated = outcomes(program)
    assert annotated == [plain] * 3 and "Error" not in str(plain[0])
