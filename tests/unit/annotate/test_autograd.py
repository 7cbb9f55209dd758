"""Autograd: hooks, checkpoints, modes, transforms and mixed precision give unchanged results."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import fastprof
from unit.annotate.annotation_outcomes import outcomes

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def data():
    return torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()


@program
def double_backward():
    x = data()
    y = functional.softplus(x * x).sum() + torch.linalg.norm(x.exp())
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    first.pow(2).sum().backward()
    return y, first, x.grad


@program
def hooks_of_tensors_and_modules():
    log = []
    x, model = data(), nn.Linear(4, 2)
    x.register_hook(lambda gradient: gradient * 2)
    model.register_forward_pre_hook(lambda module, args: log.append(len(args)))
    model.register_forward_hook(lambda module, args, output: output + 1)
    model.register_full_backward_hook(lambda module, gi, go: log.append([g.shape for g in gi]))
    model.weight.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.sum()))
    y = functional.relu(model(x))
    y.grad_fn.register_hook(lambda gi, go: log.append(len(gi)))
    y.retain_grad()
    y.sum().backward()
    return y, y.grad, x.grad, model.weight.grad, log


@program
def hooks_of_all_modules_and_saved_tensors():
    log = []
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, args, output: log.append(type(module).__name__)
    )
    pack, unpack = (lambda t: (log.append("pack"), t.clone())[1]), (lambda t: t)
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            x = data()
            nn.Sequential(nn.Linear(4, 4), nn.GELU())(x).prod().backward()
    finally:
        handle.remove()
    return log, x.grad


@program
def anomaly_mode():
    x = data()
    with torch.autograd.detect_anomaly(check_nan=True):
        try:
            torch.sqrt(x).sum().backward()
        except RuntimeError as error:
            return str(error)


@program
def checkpoint_reentrant():
    x, model = data(), nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ReLU())
    y = checkpoint(model, x, use_reentrant=True)
    y.sum().backward()
    return y, x.grad, model[0].weight.grad


@program
def checkpoint_not_reentrant():
    x, model = data(), nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ReLU())
    with fastprof.annotate_layers(model, "model"):
        y = checkpoint(model, x, use_reentrant=False)
        y.sum().backward()
    return y, x.grad, model[0].weight.grad


@program
def modes_of_gradients():
    x = data()

    @torch.no_grad()
    def decorated(x):
        return functional.relu(x), torch.is_grad_enabled()

    with torch.no_grad():
        free = x * 2
        with torch.enable_grad():
            bound = x * 2
    with torch.inference_mode():
        inferred = x + 1
    torch.set_grad_enabled(False)
    set_off = x + 1
    torch.set_grad_enabled(True)
    try:
        x.add_(1)
    except RuntimeError as error:
        refusal = str(error)
    return decorated(x), free, bound, inferred.is_inference(), set_off, refusal


@program
def versions_and_views():
    x = data()
    y = x.clone()
    view = y[0]
    view.mul_(3)
    y.sum().backward()
    return y._version, view._is_view(), view._base is y, x.grad, y.detach().requires_grad


@program
def mixed_precision_and_a_scaler():
    model, x = nn.Linear(4, 4), data()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=True, init_scale=4.0)
    with torch.autocast("cpu", torch.bfloat16):
        y = model(x)
        loss = functional.mse_loss(y.float(), torch.ones(3, 4)) + (y @ y.T).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return y, loss, model.weight, scaler.get_scale(), torch.is_autocast_enabled("cpu")


@program
def transforms_of_functions():
    def f(x):
        return functional.gelu(x).pow(2).sum() + torch.sigmoid(x[0])

    x = torch.linspace(-1, 1, 3)
    return (
        torch.func.grad(f)(x),
        torch.func.vmap(f)(torch.stack([x, -x])),
        torch.func.vmap(torch.add, in_dims=(0, None))(torch.stack([x, -x]), x),
        torch.func.vmap(torch.Tensor.sum)(torch.stack([x, -x])),
        torch.func.jvp(f, (x,), (torch.ones(3),)),
        torch.func.vjp(f, x)[1](torch.tensor(1.0)),
        torch.func.jacrev(functional.relu)(x),
        torch.func.jacfwd(torch.sin)(x),
        torch.func.hessian(f)(x),
        torch.func.functionalize(lambda x: x.clone().add_(1))(x),
        torch.vmap(lambda x: x + torch.rand(1), randomness="different")(torch.ones(3, 1)).shape,
    )


@program
def functional_calls_and_ensembles():
    model = nn.Linear(4, 2)
    parameters = dict(model.named_parameters())
    x = data().detach()
    gradient = torch.func.grad(
        lambda parameters: torch.func.functional_call(model, parameters, (x,)).sum()
    )(parameters)
    stacked, _ = torch.func.stack_module_state([nn.Linear(4, 2), nn.Linear(4, 2)])
    both = torch.func.vmap(
        lambda state, x: torch.func.functional_call(model, state, (x,)), in_dims=(0, None)
    )(stacked, x)
    return gradient, both


@program
def forward_mode():
    x = data().detach()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        return torch.autograd.forward_ad.unpack_dual(functional.silu(dual).mul(2)).tangent


@program
def optimizers_of_all_kinds():
    result = []
    for kind, options in (
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.Adam, {"foreach": True}),
        (torch.optim.AdamW, {"fused": True}),
        (torch.optim.RMSprop, {}),
        (torch.optim.Adagrad, {}),
        (torch.optim.LBFGS, {"max_iter": 3}),
    ):
        x = data()
        optimizer = kind([x], lr=0.1, **options)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)

        def closure(x=x, optimizer=optimizer):
            optimizer.zero_grad()
            loss = functional.huber_loss(x, torch.ones(3, 4))
            loss.backward()
            return loss

        for _ in range(2):
            loss = optimizer.step(closure)
            scheduler.step()
        result.append((loss, x.detach(), [*optimizer.state_dict()], scheduler.get_last_lr()))
    return result


@program
def recurrent_networks():
    result = []
    for kind in (nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell):
        model = kind(4, 3)
        x = data()
        y = model(x)
        y = y[0] if isinstance(y, tuple) else y
        y.sum().backward()
        result.append((y, x.grad))
    packed = nn.utils.rnn.pack_sequence([torch.ones(2, 4), torch.ones(1, 4)])
    result.append(nn.LSTM(4, 3)(packed)[0].data)
    return result


@program
def attention_and_training():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2)
    x = data()[None]
    y = model(x, mask=nn.Transformer.generate_square_subsequent_mask(3), is_causal=True)
    functional.cross_entropy(y[0], torch.tensor([0, 1, 2])).backward()
    evaluated = model.eval()(x)
    with torch.inference_mode():
        fast = model(x)
    return y, evaluated, fast, [p.grad for p in model.parameters()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_and_values_are_the_same(name):
    plain, *annotated = outcomes(PROGRAMS[name])
    assert annotated == [plain] * 3
    assert plain[0] not in ("TypeError", "AttributeError", "NameError", "RuntimeError"), plain
