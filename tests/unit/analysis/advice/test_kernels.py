"""The rules of `advise` on kernels: where each fires, what it saves, and where it is silent."""

from typing import Any

import pytest

import fastprof
from fastprof.analysis.advice.calls import cut_tensors, operands, sizes, type_of
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge
from fastprof.analysis.advice.registry import all_rules
from fastprof.analysis.advice.rules.tensor_cores import padded_size
from support.kineto_files import KinetoFile
from unit.analysis.kineto_runs import A100, Capture

V100 = {"id": 0, "name": "Tesla V100-SXM2-16GB", "numSms": 80}
P100 = {"id": 0, "name": "Tesla P100-PCIE-16GB", "numSms": 56}
RTX_3070 = {"id": 0, "name": "NVIDIA GeForce RTX 3070 Ti", "numSms": 48}
TF32, HALF, BANDWIDTH = 156e12, 312e12, 1555e9
N = 4096
SGEMM, HGEMM = (
    "ampere_sgemm_128x64_tn",
    "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn",
)
TF32_CONV = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::sigmoid>(int)"
CAST = (
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda"
    "(at::TensorIteratorBase&)::{lambda()#1}>(int)"
)
SOFTMAX = "void cunn_SoftMaxForward<4, c10::BFloat16>(int)"
ENGINE = "autograd::engine::evaluate_function: "


def tensors(*dims: list[int], type_: str = "float") -> dict[str, Any]:
    return {"dims": list(dims), "types": [type_] * len(dims)}


@pytest.fixture
def found(tmp_path):
    """The findings of a rule in a capture."""

    def of(capture: KinetoFile, rule: str):
        profile = fastprof.open(capture.write(tmp_path / "x.json"), copies=True)
        return list(all_rules()[rule].findings(Facts(profile)))

    return of


def only(findings):
    (finding,) = findings
    return finding


def mm(gpu=A100, name=SGEMM, length=10_000_000, type_="float"):
    return Capture(gpu).run("aten::mm", (name, length), **tensors([N, N], [N, N], type_=type_))


def test_fp32_products_use_tf32_where_it_is_faster(found):
    finding = only(found(mm(), "no-tensor-cores"))
    assert finding.gpu_ns == pytest.approx(10_000_000 - 2 * N**3 / (0.8 * TF32) * 1e9)
    assert 'set_float32_matmul_precision("high")' in finding.remedy
    assert finding.confidence == "high"
    assert list(finding.kernels) == [0]


def test_fp32_products_of_a_v100_use_fp16(found):
    finding = only(found(mm(V100), "no-tensor-cores"))
    assert "float16" in finding.remedy
    assert "tf32" not in finding.remedy.lower()
    assert finding.gpu_ns == pytest.approx(10_000_000 - 2 * N**3 / (0.8 * 125e12) * 1e9)


def test_16_bits_are_the_remedy_where_tf32_has_the_rate_of_fp32(found):
    assert "bfloat16" in only(found(mm(RTX_3070), "no-tensor-cores")).remedy


def test_tf32_is_not_advised_where_it_is_enabled(found):
    image, weights = [32, 64, 56, 56], [64, 64, 3, 3]
    capture = Capture()
    for name in (TF32_CONV, "void fft2d_r2c_32x32<float>(int)", "ampere_scudnn_128x64_relu_nn"):
        capture.run("aten::conv2d", (name, 3_000_000), **tensors(image, weights))
    finding = only(found(capture, "no-tensor-cores"))
    assert "allow_tf32" not in finding.remedy
    assert "bfloat16" in finding.remedy


def test_products_outside_autocast(found):
    capture = mm()
    assert "extend" not in only(found(capture, "no-tensor-cores")).remedy
    capture.run("aten::mm", (HGEMM, 9000), **tensors([N, N], [N, N], type_="c10::Half"))
    assert "extend the autocast region" in only(found(capture, "no-tensor-cores")).remedy


def test_products_without_flops_are_judged_by_the_peaks(found):
    finding = only(found(Capture().run(None, (SGEMM, 1_000_000)), "no-tensor-cores"))
    assert finding.gpu_ns == pytest.approx(1_000_000 * (1 - 2 * 19.5 / 156))
    assert finding.confidence == "medium"


def test_an_unknown_gpu_is_not_judged(found):
    with pytest.raises(CannotJudge, match="--gpu NAME"):
        found(mm({"id": 0, "name": "GPU 17"}), "no-tensor-cores")


def linear(features, name="gemm_fp16_sgemm_fp16_128x64_tn", length=2_000_000):
    shapes = tensors([8, 1024], [features, 1024], type_="c10::Half")
    return Capture().run("aten::linear", (name, length), **shapes)


def test_the_vocabulary_is_padded(found):
    finding = only(found(linear(50257), "bad-shape"))
    assert "pad 50257 to 50304" in finding.remedy
    assert 0 < finding.gpu_ns < 2_000_000


def test_padded_sizes():
    assert [padded_size(size) for size in (50257, 257, 250, 17, 8)] == [50304, 320, 256, 24, 8]


def attention(heads=16, tokens=512, inner=64, *, softmax=None, between=(), capture=None):
    """Products around a softmax; `between` are operators on the scores."""
    scores = [heads, tokens, tokens]
    keys, values = [heads, inner, tokens], [heads, tokens, inner]
    capture = capture or Capture()
    shapes = {"type_": "c10::BFloat16"}
    name = HGEMM.replace("fp16", "bf16")
    capture.run("aten::bmm", (name, 100_000), **tensors(values, keys, **shapes))
    for op in between:
        capture.run(op, (ELEMENTWISE, 50_000), **tensors(scores, **shapes))
    capture.run("aten::softmax", (SOFTMAX, 200_000), **tensors(softmax or scores, **shapes))
    return capture.run("aten::bmm", (name, 100_000), **tensors(scores, values, **shapes))


def test_attention_that_writes_its_scores(found):
    finding = only(found(attention(), "unfused-attention"))
    flops, moved = 2 * 2 * 16 * 512 * 512 * 64, 4 * 16 * 512 * 64 * 2
    fused = max(flops / (0.8 * HALF), moved / (0.9 * BANDWIDTH)) * 1e9
    assert finding.gpu_ns == pytest.approx(400_000 - fused)
    assert "scaled_dot_product_attention" in finding.remedy
    assert len(finding.kernels) == 3


def test_attention_that_a_checkpoint_computes_again_is_one_finding(found):
    once, capture = only(found(attention(), "unfused-attention")), attention()
    begin = capture.at
    attention(capture=capture, between=["aten::dropout"])  # else the kernels repeat, as steps do
    capture.op(begin, capture.at, "CheckpointFunctionBackward")
    both = only(found(capture, "unfused-attention"))
    assert len(both.kernels) == 7
    assert both.gpu_ns == pytest.approx(2 * once.gpu_ns + 50_000)


def test_work_on_the_scores_is_fused_too(found):
    alone = only(found(attention(), "unfused-attention"))
    masked = only(found(attention(between=["aten::add", "aten::dropout"]), "unfused-attention"))
    assert masked.gpu_ns == pytest.approx(alone.gpu_ns + 100_000)


def test_without_peaks_the_products_of_attention_keep_their_time(found):
    capture = attention()
    capture.root["deviceProperties"] = [{"id": 0, "name": "GPU 17"}]
    finding = only(found(capture, "unfused-attention"))
    assert finding.gpu_ns == pytest.approx(200_000)
    assert finding.confidence == "medium"


def test_the_backward_pass_of_attention(found):
    capture, seq = attention(), 0
    for event in capture.events:
        if event["cat"] == "cpu_op":
            seq += 1
            event["args"]["Sequence number"] = seq
    for number, name in ((3, "BmmBackward0"), (2, "SoftmaxBackward0"), (1, "BmmBackward0")):
        kernel = SOFTMAX if number == 2 else HGEMM.replace("fp16", "bf16")
        capture.run(ENGINE + name, (kernel, 300_000), seq=number)
    finding = only(found(capture, "unfused-attention"))
    assert len(finding.kernels) == 6
    assert 900_000 < finding.gpu_ns < 1_300_000


BF16 = "c10::BFloat16"
B, HEADS, SEQ, INNER = 2, 8, 512, 64
SCORES, TRANSPOSED, MATRIX = [B, HEADS, SEQ, SEQ], [B, HEADS, INNER, SEQ], [B, HEADS, SEQ, INNER]


def under_autocast():
    """Attention as product, div, masked_fill, softmax in fp32 with casts, product; and backward."""
    capture, bf16 = Capture(), BF16
    product = (HGEMM.replace("fp16", "bf16"), 100_000)
    cast, pointwise, softmax = (CAST, 200_000), (ELEMENTWISE, 50_000), (SOFTMAX, 150_000)
    copy = ("Memcpy DtoD (Device -> Device)", 40_000)
    calls = [
        ("matmul", [bf16, bf16], [product], [product, product], [MATRIX, TRANSPOSED]),
        ("div", [bf16], [pointwise], [pointwise], [SCORES]),
        ("masked_fill", [bf16, "bool"], [copy, pointwise], [copy, pointwise], [SCORES, [SEQ, SEQ]]),
        ("softmax", [bf16], [cast, softmax], [softmax, cast], [SCORES]),
        ("matmul", [bf16, bf16], [cast, product], [product, product, cast], [SCORES, MATRIX]),
    ]
    for seq, (name, types, forward, _, dims) in enumerate(calls, 1):
        capture.run(f"aten::{name}", *forward, dims=dims, types=types, seq=seq)
    for seq, (_, _, _, backward, _) in reversed(list(enumerate(calls, 1))):
        capture.run(ENGINE + "BmmBackward0", *backward, seq=seq)
    return capture


def test_attention_under_autocast_with_its_backward_pass(found):
    finding = only(found(under_autocast(), "unfused-attention"))
    flops, moved = 2 * 2 * B * HEADS * SEQ * SEQ * INNER, 4 * B * HEADS * SEQ * INNER * 2
    fused = max(flops / (0.8 * HALF), moved / (0.9 * BANDWIDTH)) * 1e9
    fused += max(1.25 * 2 * flops / (0.8 * HALF), 2 * moved / (0.9 * BANDWIDTH)) * 1e9
    time = 6 * 100_000 + 4 * 200_000 + 4 * 50_000 + 2 * 150_000 + 2 * 40_000
    assert finding.gpu_ns == pytest.approx(time - fused)
    assert len(finding.kernels) == 18


def test_attention_of_annotated_operators(found):
    """`@` of tensors has the name of its method in the ranges of `fastprof run`."""
    capture, product = Capture(), (HGEMM.replace("fp16", "bf16"), 100_000)
    for shapes in ((MATRIX, TRANSPOSED), (SCORES, MATRIX)):
        if shapes[0] == SCORES:
            capture.run("aten::softmax", (SOFTMAX, 200_000), **tensors(SCORES, type_=BF16))
        begin = capture.at
        capture.run(None, product)
        args = [
            {"name": "", "type": "tensor", "shape": tuple(shape), "dtype": "bfloat16"}
            for shape in shapes
        ]
        capture.annotation(
            begin, capture.at, str({"mod": "Tensor", "op": "__matmul__", "args": args})
        )
    assert len(only(found(capture, "unfused-attention")).kernels) == 3


@pytest.mark.parametrize("rule", ["far-from-roof", "autocast-casts", "unfused-pointwise"])
def test_what_one_kernel_replaces_is_in_no_other_finding(found, rule):
    assert not found(under_autocast(), rule)


@pytest.mark.parametrize(("kernel", "n"), [(SOFTMAX, 1), (ELEMENTWISE, 0)])
def test_the_math_backend(found, kernel, n):
    shapes = tensors(*[[2, 16, 512, 64]] * 3, type_="c10::Half")
    kernels = (HGEMM, 100_000), (kernel, 200_000), (HGEMM, 100_000)
    capture = Capture().run("aten::scaled_dot_product_attention", *kernels, **shapes)
    findings = found(capture, "unfused-attention")
    assert len(findings) == n
    assert all("math backend" in finding.what for finding in findings)
    flops, moved = 4 * 32 * 512 * 512 * 64, 4 * 32 * 512 * 64 * 2
    ideal = max(flops / (0.8 * HALF), moved / (0.9 * BANDWIDTH)) * 1e9
    assert all(finding.gpu_ns == pytest.approx(400_000 - ideal) for finding in findings)


def test_conversions_of_layout(found):
    transpose = "void cudnn::ops::nchwToNhwcKernel<float, float>(int)"
    shapes = tensors([32, 64, 56, 56], [64, 64, 3, 3])
    capture = Capture().run("aten::conv2d", (transpose, 20_000), (TF32_CONV, 100_000), **shapes)
    finding = only(found(capture, "layout"))
    assert (finding.gpu_ns, list(finding.kernels)) == (20_000, [0])
    assert "channels_last" in finding.remedy
    assert "MIOPEN" not in finding.remedy


def test_casts_of_operands(found):
    shapes = tensors([N, N], [N, N], type_="c10::Half")
    capture = Capture().run("aten::mm", (CAST, 30_000), (HGEMM, 600_000), **shapes)
    finding = only(found(capture, "autocast-casts"))
    assert finding.gpu_ns == 30_000


BF16_COPY = "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)"
COPY = "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)"
OLD = f"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<{COPY}>(int)::"
NEW = f"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<{COPY}>(int)"


@pytest.mark.parametrize(
    ("kernels", "n"),
    [
        ([f"void at::native::vectorized_elementwise_kernel<4, {COPY}>(int)"], 0),
        ([f"void at::native::vectorized_elementwise_kernel<4, {BF16_COPY}>(int)"], 1),
        ([NEW], 0),
        ([f"{OLD}{{lambda(int)#1}}>(int)"], 0),
        ([f"{OLD}{{lambda(int)#2}}>(int)"], 1),
        ([NEW, f"{OLD}{{lambda(int)#1}}>(int)"], 1),
    ],
    ids=[
        "contiguous",
        "to bf16",
        "a layout",
        "a layout, earlier torch",
        "earlier torch",
        "strided",
    ],
)
def test_copies_of_one_type_are_no_casts(found, kernels, n):
    shapes = tensors([N, N], [N, N], type_="c10::BFloat16")
    work = [(name, 30_000) for name in kernels]
    capture = Capture().run("aten::mm", *work, (HGEMM, 600_000), **shapes)
    findings = found(capture, "autocast-casts")
    assert [finding.gpu_ns for finding in findings] == [30_000] * n


def test_copies_of_the_model(found):
    capture = Capture()
    for op in ("aten::contiguous", "aten::to", "aten::cat"):
        capture.run(op, (CAST, 40_000), **tensors([N, N]))
    copies, casts = found(capture, "copies-in-model")
    assert (copies.gpu_ns, casts.gpu_ns) == (40_000, 40_000)
    assert "contiguous" in copies.what
    assert "(to)" in casts.what


def chain(*ops, then=None, last=0):
    """Elementwise calls, perhaps other work and one more of another size."""
    capture = Capture()
    for op in ops:
        operands_ = [[1 << 24]] * (2 if op in ("aten::mul", "aten::add") else 1)
        capture.run(op, (ELEMENTWISE, 150_000), **tensors(*operands_))
    if then:
        capture.run(*then[:-1], **then[-1])
    if then or last:
        capture.run("aten::relu", (ELEMENTWISE, 150_000), **tensors([last or 1 << 24]))
    return capture


def test_elementwise_calls_in_succession(found):
    finding = only(found(chain("aten::sigmoid", "aten::relu"), "elementwise-chain"))
    fused = 2 * 4 * (1 << 24) / (0.9 * BANDWIDTH) * 1e9
    assert finding.gpu_ns == pytest.approx(300_000 - fused)
    assert "sigmoid, relu" in finding.what


def optimizer(n, length=3000, name=ELEMENTWISE):
    capture = Capture()
    begin = capture.at
    for _ in range(n):
        capture.run("aten::add_", (name, length), **tensors([64]))
    return capture.annotation(begin, capture.at, "Optimizer.step#Adam.step")


def test_an_optimizer_with_a_kernel_per_parameter(found):
    finding = only(found(optimizer(60), "optimizer-loop"))
    assert 0 < finding.gpu_ns <= 60 * 3000
    assert "fused=True" in finding.remedy


def softmax(length):
    return Capture().run("aten::softmax", (SOFTMAX, length), **tensors([N, N]))


def test_far_from_the_roof(found):
    finding = only(found(softmax(10_000_000), "far-from-roof"))
    ideal = 2 * 4 * N * N / (0.9 * BANDWIDTH) * 1e9
    assert finding.gpu_ns == pytest.approx(10_000_000 - ideal)
    assert finding.confidence == "low"


def narrow(blocks, length):
    shapes = tensors([16, N], [N, N], type_="c10::Half")
    return Capture().run("aten::mm", (HGEMM, length), grid=(blocks, 1, 1), **shapes)


def test_a_product_on_few_multiprocessors(found):
    finding = only(found(narrow(27, 80_000), "small-grid"))
    assert finding.gpu_ns == pytest.approx(80_000 * (1 - 27 / 108))
    assert "27 of 108 multiprocessors" in finding.what


def backward(op, kernels, *dims, types=None, node="ConvolutionBackward0"):
    """A call and its backward pass."""
    capture = Capture()
    types = types or ["float"] * len(dims)
    given = {"dims": list(dims), "types": types, "seq": 7}
    capture.run(op, (ELEMENTWISE, 1000), **given)
    return capture.run(ENGINE + node, *kernels, seq=7)


DGRAD = "void cudnn::detail::dgrad_engine<float, 128, 6, 7, 3, 3, 5, true>(int)"
WGRAD = "void cudnn::cnn::wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, true, 512>(int)"


def conv(channels, *kernels):
    return backward("aten::conv2d", kernels, [32, channels, 224, 224], [64, channels, 7, 7])


def test_the_gradient_of_images(found):
    finding = only(found(conv(3, (WGRAD, 50_000), (DGRAD, 70_000)), "dead-gradient"))
    assert (finding.gpu_ns, list(finding.kernels)) == (70_000, [2])
    assert "requires_grad=False" in finding.remedy


def embedding(rows, used):
    name = "void at::native::embedding_backward_feature_kernel<float, float, int>(int)"
    return backward(
        "aten::embedding",
        [(ELEMENTWISE, 400_000), (name, 100_000)],
        [rows, 64],
        [used],
        types=["float", "long int"],
        node="EmbeddingBackward0",
    )


def test_a_dense_gradient_of_an_embedding(found):
    finding = only(found(embedding(1_000_000, 4096), "embedding-gradient"))
    target = 2 * 4096 * 64 * 4 / (0.9 * BANDWIDTH) * 1e9
    assert finding.gpu_ns == pytest.approx(500_000 - target)
    assert "sparse=True" in finding.remedy


FOREACH = "void at::native::multi_tensor_apply_kernel<int>(int)"
PRODUCT = ("aten::mm", (HGEMM, 9000), tensors([N, N], [N, N]))
IMAGES = tensors([32, 64, 56, 56], [64, 64, 3, 3])
# Rule, what is there, and a capture of it.
SILENT = [
    ("no-tensor-cores", "a GPU without tensor cores", mm(P100)),
    ("no-tensor-cores", "tensor cores in use", mm(name=HGEMM, type_="c10::Half")),
    ("no-tensor-cores", "faster than the roof", mm(length=1000)),
    ("bad-shape", "a multiple of 8", linear(50304)),
    ("bad-shape", "near the roof with tensor cores", linear(50257, HGEMM, 60_000)),
    ("unfused-attention", "no square", attention(softmax=[16, 512, 256])),
    ("unfused-attention", "other heads", attention(softmax=[8, 512, 512])),
    ("unfused-attention", "no heads", attention(softmax=[512, 512])),
    ("layout", "no conversion", Capture().run("aten::conv2d", (TF32_CONV, 9), **IMAGES)),
    ("autocast-casts", "no cast", mm()),
    ("elementwise-chain", "other work between", chain("aten::sigmoid", then=PRODUCT)),
    ("elementwise-chain", "other shapes", chain("aten::sigmoid", last=1 << 23)),
    ("optimizer-loop", "few kernels", optimizer(40)),
    ("optimizer-loop", "long kernels", optimizer(60, 20_000)),
    ("optimizer-loop", "foreach", optimizer(60, name=FOREACH)),
    ("far-from-roof", "near the roof", softmax(150_000)),
    ("far-from-roof", "another finding", mm()),
    ("small-grid", "a block for each multiprocessor", narrow(108, 80_000)),
    ("small-grid", "a short kernel", narrow(27, 5000)),
    ("dead-gradient", "gradient of weights only", conv(3, (WGRAD, 50_000))),
    ("dead-gradient", "an inner layer", conv(64, (WGRAD, 50_000), (DGRAD, 70_000))),
    ("embedding-gradient", "a small table", embedding(1000, 4096)),
]


@pytest.mark.parametrize(
    ("rule", "capture"),
    [(rule, capture) for rule, _, capture in SILENT],
    ids=[f"{rule}: {what}" for rule, what, _ in SILENT],
)
def test_no_advice(found, rule, capture):
    assert not found(capture, rule)


def test_captures_without_operators_are_not_judged(found):
    capture = Capture().run(None, (SGEMM, 1000))
    with pytest.raises(CannotJudge, match="no operators"):
        found(capture, "autocast-casts")
    capture = Capture().run("aten::mm", (SGEMM, 1000))
    with pytest.raises(CannotJudge, match="record_shapes=True"):
        found(capture, "unfused-attention")


def test_long_lists_of_tensors_are_cut():
    few, many = ";".join(["[4,8]fp32"] * 8), ";".join(["[4,8]fp32", *["[]fp64"] * 147])
    text = f"2 x _foreach_mul_ {many}, net.py:84, and 8 more"
    assert cut_tensors(text) == (
        "2 x _foreach_mul_ 148 tensors [4,8]fp32 ..., net.py:84, and 8 more"
    )
    assert cut_tensors(f"1 x stack {few}, net.py:1") == f"1 x stack {few}, net.py:1"
    tuples = "T=[(2,3)" + ",()" * 9 + "],['float32'" + ",'na'" * 9 + "]"
    assert cut_tensors(f"cat {tuples}, here") == "cat 10 tensors [2,3]float32 ..., here"


def test_tensors_are_complete_in_rows_and_cut_in_text(tmp_path):
    lists = tensors(*[[64, 64]] * 40)  # of parameters and of what is added to them
    capture = Capture().run("aten::_foreach_add_", (FOREACH, 900_000), **lists)
    table = fastprof.open(capture.write(tmp_path / "x.json"), copies=True).advise(min=0)
    (row,) = [row for row in table.rows() if row["id"] == "far-from-roof"]
    assert row["where"].count("[64,64]fp32") == 20
    assert "20 tensors [64,64]fp32 ..." in table.text()


def test_shapes_in_params():
    assert sizes("B=16,M=64,N=5185,K=5185,bf16,") == {"B": 16, "M": 64, "N": 5185, "K": 5185}
    assert (type_of("M=1,N=2,K=3,fp16,"), type_of("[2]fp32"), type_of(None)) == ("fp16", None, None)
    assert operands("[2,3]fp32;[]fp64") == [((2, 3), "fp32"), ((), "fp64")]
    assert operands("T=[(2,3),()],['float32','na']") == [((2, 3), "float32"), ((), "na")]
    assert operands("M=1,N=2,fp16,") == operands(None) == []
