"""`fastprof repro`: the script runs, on a CPU, what the trace recorded."""

import ast
import re

import pytest

import fastprof
from fastprof import ReportError, cli
from support.kineto_files import KinetoFile
from unit.analysis.repro.repeated_calls import US, Calls, ran, repeated

pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")


def mm() -> Calls:
    dims, types = [[64, 32], [32, 16]], ["float", "float"]
    calls = Calls().call("aten::mm", dims, types, 30, strides=[[32, 1], [1, 32]], concrete=["", ""])
    return calls.call("aten::mm", dims, types, 50, strides=[[32, 1], [1, 32]], concrete=["", ""])


def test_a_product_is_repeated_with_its_sizes_and_what_was_recorded(opened, tmp_path):
    text = opened(mm()).repro()
    assert "T((64, 32), 'float32', (32, 1)), T((32, 16), 'float32', (1, 32))" in text
    printed = repeated(text, tmp_path)
    assert "aten::mm(float32[64, 32], float32[32, 16]), 2 calls recorded" in printed
    assert re.search(r"forward recorded +40\.00 ", printed)  # the mean
    assert "forward measured" in printed
    assert "results   (64, 16)" in printed
    assert "backward" not in printed


def test_rates_are_those_of_the_recorded_time(opened, tmp_path):
    printed = repeated(opened(mm()).repro(), tmp_path)
    flops = 2 * 64 * 32 * 16
    assert re.search(rf"forward recorded +40\.00 +{flops / 40e3 / 1e3:.2f} ", printed)


def test_the_backward_pass_is_repeated_where_it_was_recorded(opened, tmp_path):
    calls = Calls().call("aten::mm", [[64, 32], [32, 16]], ["float"] * 2, 30, seq=5).backward(5, 70)
    printed = repeated(opened(calls).repro(), tmp_path)
    assert re.search(r"backward recorded +70\.00 ", printed)
    assert "backward measured" in printed


ARGUMENTS = [
    ("aten::conv2d", [[2, 3, 8, 8], [4, 3, 3, 3], [4], [], [], [], []],
     ["float", "float", "float", "ScalarList", "ScalarList", "ScalarList", "Scalar"],
     ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"], "(2, 4, 8, 8)"),
    ("aten::embedding", [[100, 16], [4, 7], [], [], []],
     ["float", "long int", "Scalar", "Scalar", "Scalar"], ["", "", "-1", "False", "False"],
     "(4, 7, 16)"),
    ("aten::add", [[8, 1], [8, 4], []], ["float", "float", "Scalar"], ["", "", "1"], "(8, 4)"),
    ("aten::add", [[8, 4], [], []], ["float", "Scalar", "Scalar"], ["", "2.5", "1"], "(8, 4)"),
    ("aten::gelu", [[8, 4], []], ["c10::BFloat16", ""], ["", ""], "(8, 4)"),
    ("aten::layer_norm", [[8, 4], [], [4], [4], [], []],
     ["float", "ScalarList", "float", "float", "Scalar", "Scalar"],
     ["", "[4]", "", "", "1e-05", "True"], "(8, 4)"),
    ("aten::linear", [[8, 4], [16, 4], [16]], ["c10::Half", "float", "float"], ["", "", ""],
     "(8, 16)"),
    ("aten::add_", [[8, 4], [8, 4], []], ["float", "float", "Scalar"], ["", "", "1"], "(8, 4)"),
    ("aten::softmax", [[8, 4], [], []], ["float", "Scalar", ""], ["", "-1", ""], "(8, 4)"),
    ("aten::cross_entropy_loss", [[8, 4], [8], [], [], [], []],
     ["float", "long int", "", "Scalar", "Scalar", "Scalar"],
     ["", "", "", "1", "-100", "0."], "()"),
    ("aten::gather", [[8, 4], [], [8, 2], []], ["float", "Scalar", "long int", "Scalar"],
     ["", "1", "", "False"], "(8, 2)"),
    ("aten::masked_fill_", [[8, 4], [8, 1], []], ["float", "bool", "Scalar"], ["", "", "0"],
     "(8, 4)"),
    ("aten::scaled_dot_product_attention", [[1, 2, 8, 4]] * 3 + [[], [], [], [], []],
     ["float"] * 3 + ["", "Scalar", "Scalar", "", "Scalar"],
     ["", "", "", "", "0.", "True", "", "False"], "(1, 2, 8, 4)"),
]  # fmt: skip


def test_arguments_are_made_as_the_operator_takes_them(opened, tmp_path):
    calls = Calls()
    for i, (name, dims, types, concrete, _) in enumerate(ARGUMENTS):
        calls.call(name, dims, types, 900 - i, concrete=concrete)
    printed = repeated(opened(calls).repro(top=len(ARGUMENTS)), tmp_path)
    shapes = {}
    for line in printed.splitlines():
        if line.endswith("1 call recorded"):
            name = line.partition(" ")[2].partition(", 1 call")[0]
        elif line.startswith("  results"):
            shapes[name] = line.split(None, 1)[1]
    wanted = [(name, shape) for name, *_, shape in ARGUMENTS]
    assert sorted((name.partition("(")[0], shape) for name, shape in shapes.items()) == sorted(
        wanted
    )


def test_calls_are_in_the_order_of_lost_time(opened, tmp_path):
    calls = mm().call("aten::relu", [[4]], ["float"], 500, concrete=[""])
    calls.call("aten::neg", [[5]], ["float"], 90, concrete=[""])
    profile = opened(calls)
    assert [f"'aten::{op}'" in profile.repro() for op in ("relu", "neg", "mm")] == [1, 0, 0]
    assert "aten::neg" in profile.repro(call=2)
    everything = profile.repro(top=10)
    assert everything.index("'aten::relu'") < everything.index("'aten::neg'")
    assert everything.index("'aten::neg'") < everything.index("'aten::mm'")
    assert "'aten::mm'" in profile.repro(where="op=mm")
    assert "results   (5,)" in repeated(everything, tmp_path)


def test_what_cannot_be_repeated_is_named_with_the_reason(opened, tmp_path, capsys):
    calls = mm().call("aten::item", [[1]], ["float"], 900, concrete=[""])
    calls.call("aten::triton_poi_fused_add_0", [[8]], ["float"], 800, concrete=[""])
    path = tmp_path / "trace.json"
    calls.write(path)
    assert cli.main(["repro", str(path), "--top", "5", "-o", str(tmp_path / "out.py")]) == 0
    told = capsys.readouterr().err
    assert "not repeated: aten::item: it has no GPU work of its own to repeat" in told
    assert "not repeated: aten::triton_poi_fused_add_0: torch.compile made it" in told
    assert "1 call, " in told


def test_tensors_of_a_list_have_the_size_that_the_kernel_names(opened, tmp_path):
    calls = Calls()
    calls.n = 1
    at = 1000 * US
    calls.op(at, at + 50 * US, "aten::cat", dims=[[[2, 3], [4, 3]], []],
             types=["TensorList", "Scalar"], **{"Concrete Inputs": ["", "0"]})  # fmt: skip
    name = "void at::native::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 3>()"
    calls.launch(at + 10 * US, at + 12 * US, 1).kernel(at + 20 * US, at + 30 * US, 1, name)
    text = opened(calls).repro()
    assert "[T((2, 3), 'bfloat16'), T((4, 3), 'bfloat16')], 0" in text
    assert "results   (6, 3)" in repeated(text, tmp_path)


def test_an_operator_of_another_library_fails_with_what_to_import(opened, tmp_path):
    done = ran(opened(Calls().call("mine::op", [[4]], ["float"], concrete=[""])).repro(), tmp_path)
    assert done.returncode == 1
    assert "mine::op: it is not in this torch; --import the library that defines it" in done.stderr


def test_the_call_of_a_kernel(opened, capsys, tmp_path):
    calls = mm().call("aten::relu", [[8, 8]], ["float"], 900)
    profile = opened(calls)
    text = profile.repro(idx=2)
    assert text == profile.repro(where="op=mm").replace("100.0% of its", "8.2% of its")
    assert profile.repro(idx=3) == profile.repro()
    with pytest.raises(ReportError, match="idx: expected 1 to 3, found 4"):
        profile.repro(idx=4)
    path = KinetoFile().launch(0, 5, 1).kernel(10, 20, 1).write(tmp_path / "bare.json")
    with pytest.raises(ReportError, match="idx: no call with recorded arguments launched kernel 1"):
        fastprof.open(path).repro(idx=1)


def test_errors_say_what_there_is(opened):
    with pytest.raises(ReportError, match="call: expected 1 to 1, found 7"):
        opened(mm()).repro(call=7)
    trace = KinetoFile().launch(0, US, 1).kernel(2 * US, 3 * US, 1)
    with pytest.raises(ReportError, match="no calls with recorded arguments; record with"):
        opened(trace).repro()


def test_names_of_the_file_are_no_code(tmp_path):
    folder = tmp_path / '""" + @CALLS@ + __import__("os").abort() + """'
    folder.mkdir()
    hostile = 'mine::mm\'"\n"""); raise SystemExit(9)'
    calls = Calls().call(hostile, [[4]], ["float"], concrete=["'''\"\"\"\\"])
    text = fastprof.open(calls.write(folder / "a\nb.json")).repro()
    tree = ast.parse(text)
    (assigned,) = [
        node for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CALLS"
    ]  # fmt: skip
    assert isinstance(assigned.value, ast.List) and len(assigned.value.elts) == 1
    assert not any(isinstance(node, ast.Expr) for node in tree.body[1:])


def test_values_that_are_made_or_assumed_are_said(opened, tmp_path):
    calls = Calls().call("aten::embedding", [[100, 16], [4, 7], [], [], []],
                         ["float", "long int", "Scalar", "Scalar", "Scalar"],
                         concrete=["", "", "-1", "False", "False"])  # fmt: skip
    calls.call("aten::bernoulli", [[8], []], ["float", ""], concrete=["", ""])
    calls.call("aten::add", [[8], [8], []], ["float", "float", "Int"])
    printed = repeated(opened(calls).repro(top=9), tmp_path)
    assert "aten::embedding(float32[100, 16], int64[4, 7] below 100, -1, False, False)" in printed
    assert "aten::bernoulli(float32[8] probabilities, None)" in printed
    assert "aten::add(float32[8], float32[8], 1?)" in printed


def test_the_arithmetic_of_products_is_that_of_the_recorded_kernels(opened, tmp_path):
    kernels = {
        "ampere_sgemm_128x64_nn": "fp32",
        "ampere_tf32_s1688gemm_128x128_nn": "tf32",
        "ampere_fp16_s1688gemm_fp16_128x128_nn": "fp16",
    }
    for name, wanted in kernels.items():
        dims, types = [[64, 32], [32, 16]], ["float", "float"]
        calls = Calls().call("aten::mm", dims, types, concrete=["", ""], kernel=name)
        assert f'"compute": {wanted!r},' in opened(calls).repro()
    text = (
        opened(calls)
        .repro()
        .replace('print(f"{number}', 'print(one.forward().dtype); print(f"{number}')
    )
    assert "torch.float16" in repeated(text, tmp_path)  # in autocast
    calls = Calls().call("aten::relu", [[8]], ["float"], concrete=[""])
    assert '"compute": None,' in opened(calls).repro()


def test_types_that_are_assumed_are_said(opened, tmp_path):
    calls = Calls().call("aten::mm", [[64, 32], [32, 16]], [], kernel="ampere_sgemm_128x64_nn")
    printed = repeated(opened(calls).repro(), tmp_path)
    assert "aten::mm(float32[64, 32], float32[32, 16])" in printed
    assert "types are those of the kernels' arithmetic, as the trace has none" in printed


def test_long_lists_are_cut_in_what_is_printed(opened, tmp_path):
    kernel = "multi_tensor_apply_kernel<M<2>, BinaryOpListAlphaFunctor<float, 2, 2, 0>>"
    sizes = [[n] for n in range(1, 10)]
    calls = Calls().call("aten::_foreach_add_", [sizes, sizes, []],
                         ["TensorList", "TensorList", "Scalar"], concrete=["", "", "1"],
                         kernel=kernel)  # fmt: skip
    printed = repeated(opened(calls).repro(), tmp_path)
    assert "float32[5], float32[6], and 3 more], [float32[1], " in printed


def test_a_result_of_other_sizes_than_recorded_is_a_failure(opened, tmp_path):
    text = opened(mm()).repro()
    assert '"result": None,' in text
    text = text.replace('"result": None,', '"result": (64, 17),')
    done = ran(text, tmp_path, "--device", "meta")
    assert done.returncode == 1
    assert "its result has other sizes than in the trace, (64, 17)" in done.stderr
