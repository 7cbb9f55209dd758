"""Recurrent layers and cells against torch's FlopCounterMode."""

import random
from typing import Any

import pytest

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops import work

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from torch.nn.utils.rnn import pack_padded_sequence  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from support.record_calls import aten_calls, python_calls, recorded  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")
LAYERS = {"lstm", "gru", "rnn_tanh", "rnn_relu"}


def random_layer(draw: random.Random) -> tuple[Any, Any, Any]:
    """A layer of torch.nn, an input (perhaps packed) and states, all with gradients."""
    kind = draw.choice(["LSTM", "GRU", "RNN"])
    features, hidden, layers = draw.randint(1, 6), draw.randint(2, 6), draw.randint(1, 3)
    options: dict[str, Any] = {name: draw.random() < 0.5 for name in ("bias", "batch_first")}
    options["bidirectional"] = draw.random() < 0.5
    if kind == "LSTM" and draw.random() < 0.5:
        options["proj_size"] = draw.randint(1, hidden - 1)
    if kind == "RNN":
        options["nonlinearity"] = draw.choice(["tanh", "relu"])
    layer = getattr(torch.nn, kind)(features, hidden, layers, **options)
    batch, steps = draw.randint(1, 4), draw.randint(1, 5)
    first, second = (batch, steps) if options["batch_first"] else (steps, batch)
    x = torch.randn(first, second, features, requires_grad=True)
    count = layers * (2 if options["bidirectional"] else 1)
    width = options.get("proj_size", hidden)
    states = torch.randn(count, batch, width, requires_grad=True)
    if kind == "LSTM":
        states = states, torch.randn(count, batch, hidden, requires_grad=True)
    if draw.random() < 0.3:
        lengths = sorted((draw.randint(1, steps) for _ in range(batch)), reverse=True)
        x = pack_padded_sequence(x, lengths, batch_first=options["batch_first"])
    return layer, x, states


def total(answer: Any) -> Any:
    """The sum of all outputs of a layer, for backward."""
    if isinstance(answer, torch.Tensor):
        return answer.sum()
    return sum(total(each) for each in answer if each is not None and not is_index(each))


def is_index(each: Any) -> bool:
    return isinstance(each, torch.Tensor) and not each.is_floating_point()


def written_as(call: Call) -> list[Call]:
    """The call with separate lists, flattened, and as in a torch range: sizes only."""
    flat: list[Any] = []
    for arg in call.args:
        flat += arg.value if isinstance(arg.value, tuple) else [arg.value]
    bare = [Tensor(each.shape if isinstance(each, Tensor) else ()) for each in flat]
    return [
        call,
        Call("aten", call.op, call.args),
        Call(call.mod, call.op, tuple(Arg("", each) for each in flat)),
        Call("aten", call.op, tuple(Arg("", each) for each in bare)),
    ]


@pytest.mark.parametrize("seed", range(40))
def test_layers_count_what_torch_counts(seed: int) -> None:
    layer, x, states = random_layer(random.Random(seed))
    with torch.backends.mkldnn.flags(enabled=False):  # else a single operator is called
        with FlopCounterMode(display=False) as forward:
            out = layer(x, states)
        with FlopCounterMode(display=False) as backward:
            total(out).backward()
        result = [
            call for call in recorded(python_calls, lambda: layer(x, states)) if call.op in LAYERS
        ]
    expected = forward.get_total_flops(), backward.get_total_flops()
    assert len(result) == 1
    for call in written_as(result[0]):
        done = [work(call, direction) for direction in ("fprop", "bprop")]
        assert tuple(each.cost.flops for each in done) == expected, call


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
@pytest.mark.parametrize("bias", [True, False])
def test_cells_count_what_torch_counts(kind: str, bias: bool) -> None:
    cell = getattr(torch.nn, kind)(4, 6, bias=bias)
    x, hidden = torch.randn(3, 4, requires_grad=True), torch.randn(3, 6, requires_grad=True)
    states = (hidden, torch.randn(3, 6, requires_grad=True)) if kind == "LSTMCell" else hidden
    with FlopCounterMode(display=False) as forward:
        out = cell(x, states)
    with FlopCounterMode(display=False) as backward:
        total(out).backward()
    expected = forward.get_total_flops(), backward.get_total_flops()
    result = [call for call in recorded(python_calls, lambda: cell(x, states)) if "cell" in call.op]
    assert len(result) == 1
    given = states if isinstance(states, tuple) else (states,)
    shapes = [Tensor(tuple(each.shape), "float32") for each in (x, *given)]
    marker = Call(kind, "forward", tuple(Arg("", shape) for shape in shapes))
    for call in (*written_as(result[0]), marker):
        done = [work(call, direction) for direction in ("fprop", "bprop")]
        assert tuple(each.cost.flops for each in done) == expected, call


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_the_forward_of_a_module_counts_what_its_function_does(kind: str) -> None:
    layer = getattr(torch.nn, kind)(4, 6)
    x, hidden = torch.randn(5, 3, 4), torch.randn(1, 3, 6)
    states = (hidden, torch.randn(1, 3, 6)) if kind == "LSTM" else hidden
    (call,) = [
        call for call in recorded(python_calls, lambda: layer(x, states)) if call.op in LAYERS
    ]
    module = Call(kind, "forward", call.args[:2])
    for direction in ("fprop", "bprop"):
        assert work(module, direction).cost.flops == work(call, direction).cost.flops


def test_one_operator_for_a_whole_layer_counts_as_much() -> None:
    layer = torch.nn.LSTM(4, 6, 2, bidirectional=True)
    x = torch.randn(5, 3, 4, requires_grad=True)
    (whole,) = [call for call in recorded(python_calls, lambda: layer(x)) if call.op == "lstm"]
    with aten_calls() as calls:
        total(layer(x)).backward()
    done = {"mkldnn_rnn_layer": 0, "mkldnn_rnn_layer_backward": 0}
    for call in calls:
        if call.op in done:
            done[call.op] += work(call, "fprop").cost.flops
    if not any(done.values()):
        pytest.skip("this build of torch has no oneDNN")
    flops = work(whole, "fprop").cost.flops
    assert done == {"mkldnn_rnn_layer": flops, "mkldnn_rnn_layer_backward": 2 * flops}
