"""`fastprof repro --variants`: what advice names for a call runs beside it, with equal results."""

import re

import pytest

from fastprof import cli
from fastprof.analysis.repro.variants import beyond, variants
from support.written_scripts import as_module
from unit.analysis.repro.repeated_calls import Calls, repeated
from unit.analysis.repro.test_padding import call

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
BACKENDS = [f"SDPBackend.{name}_ATTENTION" for name in ("FLASH", "EFFICIENT", "CUDNN")]
AUTOTUNE = 'torch.compile(mode="max-autotune-no-cudagraphs")'
TF32 = 'torch.set_float32_matmul_precision("high")'
HEADS = (1, 2, 8, 32)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (call("mm", (8, 16), (16, 32)), [AUTOTUNE]),
        (call("mm", (8, 16), (16, 32), dtype="float"),
         [TF32, "torch.bfloat16", "torch.float16", AUTOTUNE]),
        (call("mm", (9, 16), (16, 31)), ["pad M 31 to 32", AUTOTUNE]),
        (call("conv2d", (2, 8, 5, 5), (8, 8, 3, 3)),
         ["channels_last", "torch.backends.cudnn.benchmark = True", "torch.compile"]),
        (call("batch_norm", (2, 8, 5, 5), dtype="float"), ["channels_last", "torch.compile"]),
        (call("scaled_dot_product_attention", HEADS, HEADS, HEADS),
         [*BACKENDS, "SDPBackend.MATH", "torch.compile"]),
        (call("gelu", (8, 8)), ["torch.compile"]),
    ],
)  # fmt: skip
def test_variants_are_those_that_apply(given, names):
    assert [variant.name for variant in variants(given, "", None)] == names


def test_tf32_is_a_variant_only_where_it_is_new():
    given = call("mm", (8, 16), (16, 32), dtype="float")
    for gpu, compute, wanted in [
        ("NVIDIA A100-SXM4-40GB", "fp32", True), ("NVIDIA A100-SXM4-40GB", "tf32", False),
        ("Tesla V100-SXM2-16GB", "fp32", False), ("AMD Instinct MI300X", None, True),
        ("AMD Instinct MI250X", "fp32", False), ("NVIDIA A100-SXM4-40GB", "fp16", False),
    ]:  # fmt: skip
        names = [variant.name for variant in variants(given, gpu, compute)]
        assert (TF32 in names) == wanted, gpu
    convolution = call("conv2d", (2, 8, 5, 5), (8, 8, 3, 3), dtype="float")
    names = [v.name for v in variants(convolution, "AMD Instinct MI300X", None)]
    assert not any("tf32" in name for name in names)


def test_calls_in_autocast_are_tried_without_casts():
    given = call("linear", (8, 16), (32, 16), dtype="float")
    names = [variant.name for variant in variants(given, "", "bf16")]
    assert names == ["torch.bfloat16", AUTOTUNE]


def test_attention_of_one_backend_runs_with_the_others():
    inner = call("_scaled_dot_product_flash_attention", HEADS, HEADS, HEADS, 0.0, True, False)
    (first, *_) = variants(inner, "", None)
    assert first.call.op == "scaled_dot_product_attention"
    assert [arg.value for arg in first.call.args[3:]] == [None, 0.0, True, None]


def test_remedies_that_join_calls_are_named():
    assert "scaled_dot_product_attention" in beyond(call("bmm", (4, 8, 8), (4, 8, 8)))
    assert "fused=True" in beyond(call("_foreach_add_"))
    assert beyond(call("mm", (8, 8), (8, 8))) == ""


def everything() -> Calls:
    """Calls that have a variant of each kind but torch.compile, which takes seconds."""
    floats = ["float"] * 3
    calls = Calls().call(
        "aten::conv2d", [[2, 12, 6, 6], [10, 12, 3, 3], [10], [], [], [], []],
        [*floats, *["ScalarList"] * 3, "Scalar"], 900,
        concrete=["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"], seq=5,
    ).backward(5, 70)  # fmt: skip
    calls.call("aten::linear", [[4, 30, 50], [51, 50], [51]], ["c10::BFloat16"] * 3, 800,
               concrete=[""] * 3)  # fmt: skip
    calls.call("aten::scaled_dot_product_attention", [[1, 2, 8, 30]] * 3 + [[]] * 5,
               [*floats, "", "Scalar", "Scalar", "", "Scalar"], 700,
               concrete=["", "", "", "", "0.", "True", "", "False"])  # fmt: skip
    calls.call("aten::relu_", [[8, 8]], ["float"], 600, concrete=[""])
    return calls.call("aten::dropout", [[64, 32], [], []], ["float", "Scalar", "Scalar"], 500,
                      concrete=["", "0.5", "True"])  # fmt: skip


def without_compiler(text: str) -> str:
    """The script without the variants that compile."""
    return re.sub(r"^ +\{\"title\": 'torch\.compile.*\n", "", text, flags=re.MULTILINE)


def test_variants_have_the_results_of_the_call(opened, tmp_path):
    text = without_compiler(opened(everything()).repro(top=9, variants=True))
    printed = repeated(text, tmp_path, is_alone=True)
    rows = {}
    for line in printed.splitlines():
        for name in ("torch.", "pad ", "channels_last", "SDPBackend."):
            if line.strip().startswith(name):
                title, *_, result = re.split(r"  +", line.strip())
                rows[title] = result
    failed = {name: text for name, text in rows.items() if text.startswith("failed")}
    assert set(failed) <= {*BACKENDS, "SDPBackend.MATH"}
    assert "No viable backend" in failed["SDPBackend.CUDNN_ATTENTION"]
    others = {name: result for name, result in rows.items() if name not in failed}
    assert all(result.startswith("equal, ") for result in others.values()), others
    assert {"pad K 50 to 56, M 51 to 56 (81.3% of its FLOPs)", "torch.bfloat16, channels_last",
            "torch.backends.cudnn.benchmark = True", "SDPBackend.MATH"} <= set(others)  # fmt: skip
    assert re.search(r"torch\.bfloat16 +[\d.]+ +[\d.]+ +[\d.]+  equal", printed)  # two passes


def test_compiled_calls_have_equal_results(opened, tmp_path):
    text = opened(
        Calls().call("aten::gelu", [[8, 8]], ["float"], 900, concrete=[""], seq=5).backward(5, 9)
    ).repro(variants=True)
    printed = repeated(text, tmp_path)
    assert re.search(r"torch\.compile +[\d.]+ +[\d.]+ +[\d.]+  equal", printed), printed


def test_wrong_results_are_no_best_variant(opened, tmp_path):
    text = without_compiler(opened(everything()).repro(variants=True))
    copied = "value[tuple(slice(size) for size in other.shape)].copy_(other)"
    assert copied in text
    wrong = text.replace(copied, "value.zero_()")
    printed = repeated(wrong, tmp_path)
    assert re.search(r"channels_last .*DIFFER, 1\.0e\+00", printed)


def test_one_table_of_all_calls_is_last(opened, tmp_path):
    text = without_compiler(opened(everything()).repro(top=9, variants=True))
    table = repeated(text, tmp_path).rpartition("\n\n")[2].splitlines()
    assert re.search(r"all calls +recorded us +measured us +\+- .*best variant$", table[0])
    assert [line.split()[1] for line in table[1:] if line.split()[0][0].isdigit()] == [
        "aten::conv2d", "aten::linear", "aten::scaled_dot_product_attention", "aten::relu_",
        "aten::dropout",
    ]  # fmt: skip
    assert table[2].split()[:2] == ["backward", "70.00"]


def test_the_command_writes_variants_of_selected_calls(tmp_path, capsys):
    trace, out = tmp_path / "trace.json", tmp_path / "out.py"
    everything().write(trace)
    arguments = ["repro", str(trace), "--variants", "-o", str(out)]
    assert cli.main([*arguments, "--op", "linear"]) == 0
    text = out.read_text()
    assert "'aten::linear'" in text and "pad K 50 to 56, M 51 to 56" in text
    assert cli.main([*arguments, "--op", "linear", "--op", "relu_", "--top", "9"]) == 0
    assert len(re.findall(r"^        \"name\": ", out.read_text(), re.MULTILINE)) == 2
    assert cli.main([*arguments, "--shape", "*fp32;*", "--top", "9"]) == 0
    assert "'aten::scaled_dot" in out.read_text()
    assert cli.main([*arguments, "--shape", "[8,8]fp32", "--top", "9"]) == 0  # as tables show it
    assert re.findall(r"^        \"name\": '(.*)'", out.read_text(), re.MULTILINE) == [
        "aten::relu_"
    ]
    capsys.readouterr()
    with pytest.raises(SystemExit):
        cli.main([*arguments, "--op", "conv3d"])
    assert "no work has op=conv3d: did you mean conv2d?" in capsys.readouterr().err


def test_a_fused_step_of_an_optimizer_is_compared_with_foreach(opened, tmp_path):
    sizes = [[[8, 4], [6]]] * 4
    numbers = ["0.001", "0.9", "0.999", "0.01", "1e-08", "False", "False"]
    calls = Calls().call(
        "aten::_fused_adam_", [*sizes, [], [[], []], *[[]] * 9],
        [*["TensorList"] * 6, *["Scalar"] * 7, "", ""], 90,
        concrete=[*[""] * 6, *numbers, "", ""],
        kernel="multi_tensor_apply_kernel<TensorListMetadata<4>, FusedAdamMathFunctor<float, 4>>",
    )  # fmt: skip
    text = opened(calls).repro(variants=True)
    assert (
        "[T((8, 4), 'float32', values='positive'), T((6,), 'float32', values='positive')]" in text
    )
    printed = repeated(text, tmp_path)
    for name in ("foreach", "for-loop"):
        assert re.search(rf"{name} in place of fused +[\d.]+ +[\d.]+  equal", printed), printed


@pytest.mark.parametrize(
    ("result", "wanted", "text"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0]], "equal, 0.0e+00"),
        ([[1.0, 2.1]], [[1.0, 2.0]], "DIFFER, 5.0e-02"),
        ([[1.0, 2.0, 0.0]], [[1.0, 2.0]], "equal, 0.0e+00"),  # padded
        ([[1.0]], [[1.0, 2.0]], "DIFFER, (1,)"),
        ([[1.0, float("nan")]], [[1.0, 2.0]], "DIFFER, inf"),
        ([[1.0, float("nan")]], [[1.0, float("nan")]], "equal, 0.0e+00"),
        ([[1, 2, 3, 5]], [[1, 2, 3, 4]], "DIFFER, 2.5e-01"),
        ([[True]], [[True]], "equal, 0.0e+00"),
        ([[1j]], [[1j]], "equal, 0.0e+00"),
        ([[1j]], [[2j]], "DIFFER, 5.0e-01"),
        ([], [], "no results"),
    ],
)
def test_results_are_compared(opened, tmp_path, result, wanted, text):
    script = as_module(opened(everything()).repro(), tmp_path)
    tensors = [[torch.tensor(item) for item in items] for items in (result, wanted)]
    assert script.difference(*tensors) == text


def test_16_bits_are_equal_within_their_rounding(opened, tmp_path):
    script = as_module(opened(everything()).repro(), tmp_path)
    x = torch.tensor([1.0, 0.5])
    assert script.difference([(1.01 * x).bfloat16()], [x]).startswith("equal")
    assert script.difference([(1.05 * x).bfloat16()], [x]).startswith("DIFFER")
    assert script.difference([(1.01 * x).half()], [x]).startswith("DIFFER")
