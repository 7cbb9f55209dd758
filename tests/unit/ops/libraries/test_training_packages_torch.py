"""Autograd functions as recorded by the PyTorch profiler: their names and arguments are read.

The functions here have only the names and arguments of the packages' functions; torch determines
what a trace records.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from fastprof.model.call import Call
from fastprof.model.markers import read_event

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from torch.profiler import profile  # noqa: E402

from unit.ops.ops_examples import cost  # noqa: E402


def recorded(name: str, directory: Path, *values: Any) -> Call:
    """The call of an autograd function of that name, read from a trace of torch.profiler."""

    def forward(ctx: Any, first: Any, *others: Any) -> Any:
        return first * 1.0

    def backward(ctx: Any, gradient: Any) -> Any:
        return (gradient, *(None for _ in values[1:]))

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function = type(name, (torch.autograd.Function,), methods)
    with profile(record_shapes=True) as recording:
        function.apply(*values)
    file = directory / "trace.json"
    recording.export_chrome_trace(str(file))
    events = json.loads(file.read_text())["traceEvents"]
    (event,) = (event for event in events if event.get("name") == name)
    args = event["args"]
    keys = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    texts = (json.dumps(args[key]) if key in args else "" for key in keys)
    meaning = read_event("\x1f".join([event["cat"], "", "", name, *texts]))
    assert not isinstance(meaning, str)
    assert meaning.call is not None
    return meaning.call


def tensor(*shape: int) -> Any:
    return torch.ones(shape, requires_grad=True)


def costs(call: Call, direction: str = "fprop") -> tuple[int | None, int | None]:
    done = cost(call, direction)
    return done.flops, done.bytes


def test_numbers_and_none_have_a_place_and_tuples_have_none(tmp_path):
    starts = torch.tensor([0, 3, 6], dtype=torch.int32)
    call = recorded(
        "FlashAttnVarlenFunc",
        tmp_path,
        *(tensor(6, 4, 8), tensor(6, 4, 8), tensor(6, 4, 8), starts, starts),
        *(3, 3, 0.0, None, True, (-1, -1), 0.0, None, False, False, None),
    )
    # Two sequences of 3: 4 heads, 18 scores each, of 8 elements.
    assert costs(call)[0] == 2 * 4 * 18 * (8 + 8)
    assert costs(call, "bprop")[0] == 2 * 4 * 18 * 5 * 8


def test_a_layer_in_the_order_of_transformer_engine(tmp_path):
    call = recorded(
        "_Linear",
        tmp_path,
        *(tensor(10, 8), tensor(2, 3, 8), tensor(10), (None, False, object(), torch.float16)),
    )
    assert costs(call) == (2 * 6 * 10 * 8 + 60, 4 * (48 + 80 + 60) + 4 * 2 * 60)


def test_a_norm_with_texts_and_a_size_among_its_arguments(tmp_path):
    call = recorded(
        "LigerRMSNormFunction", tmp_path, tensor(2, 3, 8), tensor(8), 1e-6, 0.0, "llama", True, None
    )
    assert costs(call) == (4 * 48, 4 * (48 + 48 + 8 + 6))
    call = recorded(
        "FusedLayerNormAffineFunction",
        tmp_path,
        *(tensor(2, 3, 8), tensor(8), tensor(8), torch.Size([8]), 1e-5, False),
    )
    assert costs(call)[0] == 8 * 48


def test_sizes_among_the_arguments_of_a_chunked_scan(tmp_path):
    call = recorded(
        "MambaChunkScanCombinedFn",
        tmp_path,
        *(tensor(2, 8, 4, 6), tensor(2, 8, 4), tensor(4), tensor(2, 8, 2, 3), tensor(2, 8, 2, 3)),
        *(4, None, None, tensor(4), None, None, None, True, (0.0, 1.0), False, False),
    )
    done = cost(call)
    assert done.exact
    assert done.flops == 2 * 16 * (4 * 2 * 3 + 4 * 4 * 6 + 2 * 4 * 6 * 3)
