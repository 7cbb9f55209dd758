"""The shares of kernels in the cost of a call: parts, gradients, unknown costs and reasons."""

import os
import sys
from pathlib import Path

import pytest

import fastprof
from fastprof.cli import main
from support import processes
from support.exports import Export
from unit.profile.callpath.test_attribution import (
    ENGINE,
    LINEAR,
    LINEAR_FLOPS,
    UNKNOWN,
    marker,
    tensor,
)

MATMUL = "aten::matmul, seq = 5, op_id = 1, sizes = [[8, 16], [16, 4]]"


def backward(*names):
    """A matmul whose backward pass launches kernels of these names."""
    export = Export().push_pop(0, 100, MATMUL, tid=1).work(40, name="sgemm_tn")
    export.push_pop(200, 900, ENGINE + "MmBackward0, seq = 5", tid=2)
    for i, name in enumerate(names):
        export.work(210 + 20 * i, tid=2, name=name)
    return export


@pytest.mark.parametrize(
    "names",
    [
        ("sgemm_nt", "sgemm_tn"),
        ("sgemm_nn", "sgemm_nn"),
        ("sgemm_nt", "sgemm_nt"),
        ("nvjet_hsh_128x128", "nvjet_hsh_64x64"),
        ("sgemm_nt", "nvjet_hsh_64x64"),
        ("nvjet_hsh_128x128", "splitKreduce_kernel", "nvjet_hsh_64x64"),
    ],
)
def test_two_gradients_cost_the_same_whatever_their_kernels_are_called(rows, names):
    flops = rows(backward(*names), "flops")[1:]
    assert sum(flops) == 2 * LINEAR_FLOPS
    assert sorted(flops)[-2:] == [LINEAR_FLOPS] * 2


@pytest.mark.parametrize(
    ("names", "flops"),
    [(["sgemm_nt"], [1]), (["sgemm_tn"], [1]), (["sgemm_tn", "splitKreduce_kernel"], [1, 0])],
)
def test_one_gradient_costs_one_product(rows, names, flops):
    assert rows(backward(*names), "flops")[1:] == [n * LINEAR_FLOPS for n in flops]


def test_two_kernels_that_are_surely_one_gradient_share_it(rows):
    export = Export().push_pop(0, 100, LINEAR, tid=1)
    export.push_pop(1, 99, "aten::linear, seq = 5", tid=1).work(40, name="sgemm_tn")
    export.push_pop(200, 300, ENGINE + "AddmmBackward0, seq = 5", tid=2)
    export.work(210, tid=2, name="sgemm_nt").work(220, tid=2, name="other_gemm_nt")
    assert rows(export, "flops")[1:] == [LINEAR_FLOPS // 2] * 2


def test_a_backward_operator_serves_where_the_forward_call_cannot_tell(rows):
    export = Export().push_pop(0, 100, "aten::mm, seq = 5, op_id = 1", tid=1)
    export.work(40, name="sgemm_tn")
    export.push_pop(200, 300, ENGINE + "MmBackward0, seq = 5", tid=2)
    export.push_pop(210, 240, "aten::mm, seq = 0, op_id = 3, sizes = [[16, 8], [8, 4]]", tid=2)
    export.work(220, tid=2, name="sgemm_nt")
    assert rows(export, "dir", "op", "flops", "params") == [
        ("fprop", "mm", None, "na=na,"),
        ("bprop", "mm", LINEAR_FLOPS, "M=4,N=16,K=8,na,"),
    ]


@pytest.mark.parametrize(
    ("shapes", "dtype", "kernel", "expected"),
    [
        (((8, 16), (33, 16)), "float16", "sgemm_tn", "M=33 is not a multiple of 8 (fp16)"),
        (((8, 24), (32, 24)), "int8", "sgemm_tn", "N=8 is not a multiple of 16 (int8)"),
        (((8, 16), (32, 16)), "int64", "sgemm_tn", "type int64 is not supported"),
        (((8, 16), (32, 16)), "float16", "volta_h884gemm_tn", "-"),
        (((8, 16), (32, 16)), "float16", "elementwise_kernel", "-"),
        (((8, 16), (32, 16)), "float16", "brand_new_gemm", None),
    ],
)
def test_why_tensor_cores_were_not_used(rows, shapes, dtype, kernel, expected):
    text = marker("linear", *(tensor(*shape, dtype=dtype) for shape in shapes))
    export = Export().push_pop(0, 100, text, tid=1).work(40, name=kernel)
    ((tc, reason),) = rows(export, "tc", "tc_reason")
    assert reason == expected
    assert (tc == "0") == (reason not in (None, "-"))


def test_fp32_without_tf32_says_how_to_allow_it(rows):
    export = Export().push_pop(0, 100, LINEAR, tid=1).work(40, name="sgemm_tn")
    ((tc, reason),) = rows(export, "tc", "tc_reason")
    assert tc == "0" and "torch.set_float32_matmul_precision" in reason


@pytest.mark.parametrize(
    ("kernel", "tc", "reason"),
    [
        ("volta_sgemm_128x64_tn", "0", "fp32 without TF32 (since Ampere: torch.set_float32"),
        ("volta_scudnn_128x64_relu_nn", "0", "fp32 without TF32 (since Ampere: torch.backends"),
        ("hgemm_tn", "0", "the type is not known"),
        ("ampere_s16816gemm_tn", "1", "-"),
        ("brand_new_gemm", None, None),
        ("elementwise_kernel", None, None),
    ],
)
def test_outside_of_all_calls_the_names_of_products_tell(rows, kernel, tc, reason):
    ((result, why),) = rows(Export().work(10, name=kernel), "tc", "tc_reason")
    assert result == tc
    assert why == reason if reason is None else why.startswith(reason)


def test_the_remedy_is_one_that_the_gpu_has(rows):
    export = Export().push_pop(0, 100, LINEAR, tid=1).work(40, name="sgemm_tn")
    ((tc, reason),) = rows(export.gpu("Tesla V100-SXM2-32GB"), "tc", "tc_reason")
    assert tc == "0"
    assert reason.startswith("fp32, and Tesla V100-SXM2-32GB has no TF32: fp16 under AMP")


@pytest.fixture
def unknown(tmp_path):
    export = Export().push_pop(0, 100, UNKNOWN, tid=1).work(10, duration=30)
    export.push_pop(200, 300, UNKNOWN, tid=1).work(210, duration=10)
    export.push_pop(400, 500, "aten::mm, seq = 4", tid=1).work(410, duration=8)
    export.push_pop(500, 600, LINEAR, tid=1).work(510, name="sgemm_tn", duration=50)
    export.work(800, duration=2)
    return export.write(tmp_path / "x.sqlite")


def test_operators_without_a_known_cost_are_told_with_their_time_and_the_reason(unknown):
    result = fastprof.open(unknown).coverage.unknown()
    assert [(call.op, call.kernels, call.time) for call in result] == [
        ("torch.nn.functional.no_such_op", 2, 40),
        ("aten.mm", 1, 8),
        (None, 1, 2),
    ]
    assert result[0].reason == "no formula"
    assert "record_shapes" in result[1].reason


def test_the_command_counts_them_and_lists_them_when_asked(unknown, capfd):
    assert main(["prof", str(unknown)]) == 0
    quiet = capfd.readouterr().err
    assert "2 operators have no known cost, 48.0 %: --unknown lists them" in quiet
    assert main(["prof", "--unknown", str(unknown)]) == 0
    printed = capfd.readouterr()
    assert "40.0 %         2 kernels  fprop  torch.nn.functional.no_such_op: no formula" in (
        printed.err
    )
    assert "no_such_op: " not in printed.out


OWN_OPS = """
import fastprof

@fastprof.op("mine", "fused_scale", aten=("mylib::fused_scale",))
def fused_scale(x: fastprof.Tensor, factor: float | fastprof.Unknown = 1.0, *, direction: str):
    count = x.shape[0] * x.shape[1]
    return fastprof.Cost(flops=count, bytes=8 * count), f"rows={x.shape[0]},{direction},"
"""


def test_a_file_of_the_user_adds_costs(tmp_path):
    text = marker("fused_scale", tensor(8, 16), {"name": "factor", "type": "float", "value": 2.0},
                  mod="mine")  # fmt: skip
    export = Export().push_pop(0, 100, text, tid=1).work(10)
    sized = "mylib::fused_scale, seq = 4, op_id = 1, sizes = [[3, 5], []]"
    export.push_pop(200, 300, sized, tid=1).work(210)
    export.push_pop(400, 500, ENGINE + "FusedBackward, seq = 4", tid=2).work(410, tid=2)
    trace, file = export.write(tmp_path / "x.sqlite"), tmp_path / "my_costs.py"
    file.write_text(OWN_OPS)
    command = [sys.executable, "-m", "fastprof", "prof", "-c", "op,params,flops,bytes", "--ops"]
    done = processes.ran([*command, file, trace], check=True)
    assert done.stdout.splitlines()[1:] == [
        "fused_scale rows=8,fprop, 128 1024",
        "fused_scale rows=3,fprop, 15 120",
        "fused_scale rows=3,bprop, 15 120",
    ]


# The line of a failing decorator; up to Python 3.10, that of the `def` below.
DECORATED = 2 if sys.version_info >= (3, 11) else 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module", "line 1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = (", "SyntaxError"),
        (
            "import fastprof\n@fastprof.op('torch', 'mm')\ndef mm(x): ...",
            f"line {DECORATED}: my_costs.mm: torch.mm already has a formula, "
            "fastprof.ops.matrix.matmul.mm",
        ),
        (
            "import fastprof\n@fastprof.op('mine', 'f(x, y)')\ndef f(x): ...",
            f"line {DECORATED}: my_costs.f: signature 'f(x, y)': the function has no parameter y",
        ),
        (
            "import fastprof\n@fastprof.op('mine', 'f')\ndef f(*args): ...",
            f"line {DECORATED}: my_costs.f: parameter *args must be positional-or-keyword or ",
        ),
        (
            "import fastprof\n@fastprof.op('mine')\ndef f(x): ...",
            "expected a name of an operator, found none",
        ),
        (None, "no such file; expected a Python file that calls fastprof.op"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_line(unknown, tmp_path, capfd, text, message):
    file = tmp_path / "my_costs.py"
    if text is not None:
        file.write_text(text)
    assert main(["prof", "--ops", str(file), str(unknown)]) == 1
    printed = capfd.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert str(file) in printed.err and message in printed.err


def test_the_file_that_the_guide_shows_does_what_it_says(tmp_path):
    guide = (Path(__file__).parents[3] / "docs" / "guide.md").read_text()
    (code,) = (text for text in guide.split("```") if text.startswith("python\n# my_costs.py"))
    (tmp_path / "my_costs.py").write_text(code.removeprefix("python\n"))
    x, half = tensor(8, 16, dtype="float16"), tensor(1, 16, dtype="float16")
    export = Export()
    export.push_pop(0, 100, marker("rope", x, half, half, mod="my_module"), tid=1).work(10)
    sized = "mylib::silu_mul, seq = 4, op_id = 1, sizes = [[3, 5], [3, 5], []]"
    export.push_pop(200, 300, sized, tid=1).work(210)
    trace = export.write(tmp_path / "x.sqlite")
    command = [sys.executable, "-m", "fastprof", "prof", "-c", "op,params,flops,bytes", "--ops"]
    command += [tmp_path / "my_costs.py", trace]
    done = processes.ran(command, check=True)
    assert done.stdout.splitlines()[1:] == [
        f"rope [8,16]fp16 {3 * 8 * 16} {2 * (2 * 8 * 16 + 2 * 16)}",
        f"silu_mul T=[(3,5),(3,5),()],['na','na','na'] {24 * 15} na",
    ]


def test_an_installed_package_offers_costs_and_one_that_fails_is_a_warning(tmp_path):
    for name, code in {"good_costs": OWN_OPS, "bad_costs": "raise RuntimeError('broken')"}.items():
        (tmp_path / f"{name}.py").write_text(code)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[fastprof.ops]\n{name} = {name}\n")
    text = marker("fused_scale", tensor(8, 16), mod="mine")
    trace = Export().push_pop(0, 100, text, tid=1).work(10).write(tmp_path / "x.sqlite")
    command = [sys.executable, "-m", "fastprof", "prof", "-c", "op,flops", trace]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = processes.ran(command, check=True, env=environment)
    assert done.stdout.splitlines()[1:] == ["fused_scale 128"]
    assert "costs of bad_costs (bad_costs): RuntimeError: broken" in done.stderr
    assert "Traceback" not in done.stderr
