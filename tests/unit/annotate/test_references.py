"""Torch functions referenced by a model before `init` have ranges; `uninit` restores them."""

import copy

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

from torch import nn
from torch.nn import functional

import fastprof
from support.annotation_modes import TOOL, listening

X = torch.tensor([-1.0, 2.0])


class Activation(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = functional.gelu
        self.several = [functional.relu, torch.sigmoid]
        self.named = {"tanh": torch.tanh}
        self.chosen = functional.silu, functional.mish

    def forward(self, x):
        for each in (self.one, *self.several, *self.named.values()):
            x = each(x)
        return x


def ops(model):
    with listening(TOOL) as heard:
        model(X)
    return [
        op for op in ("gelu", "relu", "sigmoid", "tanh") if f"'op': '{op}'" in str(heard.texts())
    ]


def test_a_model_built_before_init_has_ranges_while_it_lasts():
    net = nn.Sequential(Activation())
    expected, attributes = net(X), dict(vars(net[0]))
    assert ops(net) == []
    with fastprof.init():
        assert ops(net) == ["gelu", "relu", "sigmoid", "tanh"]
        assert torch.equal(net(X), expected)
        assert net[0].one is functional.gelu and net[0].several[0] is functional.relu
        inside = copy.deepcopy(net)
    assert ops(net) == ops(inside) == []
    for each in (net, inside):
        assert each[0].one is functional.gelu and each[0].several == [
            functional.relu,
            torch.sigmoid,
        ]
        assert type(each[0].one) is type(len) and each[0].named["tanh"] is torch.tanh
    assert all(vars(net[0])[name] is value for name, value in attributes.items())


def test_what_a_program_puts_there_itself_stays():
    net = Activation()
    with fastprof.init():
        net.one = abs
        net.several[0] = functional.gelu
    assert net.one is abs and net.several[0] is functional.gelu


def test_torchs_own_layers_keep_their_fast_path():
    layer = nn.TransformerEncoderLayer(4, 2, 8, activation=functional.gelu).eval()
    expected = layer(X.expand(1, 2, 2).reshape(1, 1, 4))
    with fastprof.init():
        assert layer.activation is functional.gelu and layer.activation_relu_or_gelu == 2
        assert torch.equal(layer(X.expand(1, 2, 2).reshape(1, 1, 4)), expected)


def test_a_model_that_is_gone_is_not_kept():
    import gc
    import weakref

    net = Activation()
    gone = weakref.ref(net)
    with fastprof.init():
        del net
        gc.collect()
        assert gone() is None
