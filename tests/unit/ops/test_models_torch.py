"""Complete models, forward and backward: the sum of FLOPs equals FlopCounterMode's total."""

from collections.abc import Callable
from typing import Any

import pytest

from fastprof.model.call import Call
from fastprof.ops import work

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode, flop_registry  # noqa: E402

from support.record_calls import aten_calls, python_calls, recorded  # noqa: E402

nn, functional = torch.nn, torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration on top of oneDNN")


class Residual(nn.Module):
    """Two convolutions and a shortcut with the same stride."""

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, filters, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(filters, filters, 3, padding="same", bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(filters) for _ in range(2)])
        same = stride == 1 and channels == filters
        self.around = nn.Identity() if same else nn.Conv2d(channels, filters, 1, stride)

    def forward(self, x: Any) -> Any:
        hidden = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(hidden)) + self.around(x))


def resnet() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 7, stride=2, padding=3),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, stride=2, padding=1),
        Residual(8, 8, 1),
        Residual(8, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


class UNet(nn.Module):
    """Strided and dilated convolutions, then transposed ones, with a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, 4, 3, padding=1)
        self.down = nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.bottom = nn.Conv2d(8, 8, 3, padding=2, dilation=2)
        self.up = nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1)
        self.leave = nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        across = torch.relu(self.enter(x))
        bottom = torch.relu(self.bottom(torch.relu(self.down(across))))
        return self.leave(torch.cat([across, torch.relu(self.up(bottom))], dim=1))


class Waves(nn.Module):
    """Convolutions of one and of three dimensions, and matrix products between them."""

    def __init__(self) -> None:
        super().__init__()
        self.wave = nn.Conv1d(2, 6, 5, stride=2)
        self.back = nn.ConvTranspose1d(6, 4, 4, stride=2)
        self.volume = nn.Conv3d(1, 3, (2, 3, 1), padding=(1, 0, 0))
        self.grown = nn.ConvTranspose3d(3, 2, 2, stride=(1, 2, 1))

    def forward(self, x: Any) -> Any:
        wave = self.back(self.wave(x))
        square = wave @ wave.transpose(1, 2)
        square = torch.bmm(square, square)
        return self.grown(self.volume(square[:, None, None]))


class Block(nn.Module):
    """A transformer block: attention and a two-layer MLP with residuals."""

    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width, bias=False)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        mixed = self.mixed(self.norms[0](x)).chunk(3, -1)
        heads = [each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in mixed]
        seen = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.wide(self.norms[1](x))))


class Recurrent(nn.Module):
    """Two bidirectional LSTM layers with learned initial states: all gradients are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, num_layers=2, bidirectional=True)
        self.states = nn.ParameterList([torch.zeros(2 * 2, 3, 8) for _ in range(2)])
        self.leave = nn.Linear(16, 5)

    def forward(self, x: Any) -> Any:
        return self.leave(self.lstm(x, tuple(self.states))[0])


# The model to build and the shape of its input. Input and weights require gradients. Grouped
# convolutions are excluded: FlopCounterMode overcounts their weight gradient
# (convolution/test_convolution_torch.py).
MODELS: list[tuple[str, Callable[[], Any], tuple[int, ...]]] = [
    ("resnet", resnet, (2, 3, 32, 32)),
    ("unet", UNet, (2, 1, 16, 16)),
    ("waves", Waves, (3, 2, 17)),
    ("transformer", Block, (2, 7, 16)),
    ("lstm", Recurrent, (5, 3, 6)),
]

# Functions whose forward and backward passes FlopCounterMode counts, by argument markers' names.
PRODUCTS = frozenset(
    {
        *(f"conv{rank}d" for rank in (1, 2, 3)),
        *(f"conv_transpose{rank}d" for rank in (1, 2, 3)),
        *("linear", "matmul", "__matmul__", "bmm", "scaled_dot_product_attention", "lstm"),
    }
)
COUNTED = frozenset(str(packet).removeprefix("aten.") for packet in flop_registry)


def built(make: Callable[[], Any], shape: tuple[int, ...]) -> Callable[[], None]:
    """A training step of the model.

    FlopCounterMode does not count oneDNN's LSTM and the CPU's fused attention; without them, both
    are matrix products.
    """
    torch.manual_seed(0)
    model, x = make(), torch.randn(shape, requires_grad=True)

    def step() -> None:
        with torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
            model(x).sum().backward()

    return step


def flops(call: Call, direction: str) -> int:
    """FLOPs of the products; biases are free in FlopCounterMode."""
    done = work(call, direction)
    assert done is not None, call
    known = [part.cost.flops for part in done.parts if part.role != "bias"]
    assert None not in known, call
    return sum(known)


def recomputed(calls: list[Call]) -> int:
    """FLOPs that fused attention recomputes in its backward pass and unfused attention does not:
    the scores, the first of the two forward products."""
    attention = [call for call in calls if call.op == "scaled_dot_product_attention"]
    return sum(flops(call, "fprop") // 2 for call in attention)


def counted(step: Callable[[], None]) -> int:
    with FlopCounterMode(display=False) as counter:
        step()
    return counter.get_total_flops()


@pytest.mark.parametrize(("name", "make", "shape"), MODELS)
def test_operators_below_sum_to_what_torch_counts(name, make, shape):
    step = built(make, shape)
    calls = [call for call in recorded(aten_calls, step) if call.op in COUNTED]
    assert sum(flops(call, "fprop") for call in calls) == counted(step) > 0


@pytest.mark.parametrize(("name", "make", "shape"), MODELS)
def test_functions_above_and_their_gradients_sum_to_what_torch_counts(name, make, shape):
    step = built(make, shape)
    calls = [call for call in recorded(python_calls, step) if call.op in PRODUCTS]
    both = sum(flops(call, direction) for call in calls for direction in ("fprop", "bprop"))
    assert both - recomputed(calls) == counted(step) > 0
