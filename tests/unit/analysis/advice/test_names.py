"""The rules of `advise` that the names of kernels suffice for: where each fires, and where not."""

from pathlib import Path

import pytest

import fastprof
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.registry import all_rules
from support.exports import Export
from support.kineto_files import KinetoFile

MS = 1_000_000
PINNED, PAGEABLE = 1, 0  # CUPTI's kinds of memory
NATIVE = "void at::native::vectorized_elementwise_kernel<4, at::native::"
MUL = NATIVE + "BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>"
SILU = NATIVE + "(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}>"
POW = NATIVE + "(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>>"
RSQRT = NATIVE + "rsqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}>"
MEAN = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<int>>>"
)
FILL = NATIVE + "FillFunctor<float>, std::array<char*, 1>>"
SGEMM = "ampere_sgemm_128x64_tn"
ATTENTION = "fmha_cutlassF_f32_aligned_64x128_rf_sm80"
FOREACH = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
Work = tuple[str, int]


def ranges(steps: int, work: list[tuple[str, list[Work]]]) -> Export:
    """Steps of ranges of the user's own, whose kernels (name, ns) follow each other on an A100."""
    export, now, free, n = Export().gpu(), 1_000_000, 2_000_000, 0
    for step in range(steps):
        begin = now
        for text, kernels in work:
            first = now
            for name, ns in kernels:
                n, now = n + 1, now + 2000
                free = max(free, now + 5000)
                export.launch(now, now + 1000, n, 1)
                if name == "memset":
                    export.memset(free, free + ns, n, 4096)
                else:
                    export.kernel(free, free + ns, n, name=name, grid=(4096, 1, 1))
                free += ns
            now += 1000
            export.push_pop(first, now, text, tid=1)
        # The call that copies the next batch ends with the copy, behind all that is queued.
        n, first, free = n + 1, now, max(free, now + 5000)
        export.copy(free, free + 10_000, n, 1, 100_000, srcKind=PAGEABLE, dstKind=2)
        free += 10_000
        now = free + 1000
        export.launch(first, now, n, 1, "cudaMemcpyAsync_v3020")
        now += 1000
        export.push_pop(begin, now, f"step {step}", tid=1)
    return export


def findings(path: Path, rule: str) -> list[fastprof.Finding]:
    return list(all_rules()[rule].findings(Facts(fastprof.open(path, copies=True))))


def only(found: list[fastprof.Finding]) -> fastprof.Finding:
    (finding,) = found
    return finding


def test_transposes_of_layouts_are_told_by_their_names(tmp_path):
    """cuDNN's kernels between NCHW and NHWC, under ranges of the user's own."""
    nchw = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>(__half*)"
    nhwc = "void cudnn::ops::nhwcToNchwKernel<__half, __half, float, true, false>(__half*)"
    conv = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nchw_tilesize128x128x64"
    work = [("forward", [(nchw, MS), (conv, 8 * MS), (nhwc, MS), (SILU, MS)])]
    finding = only(findings(ranges(3, work).write(tmp_path / "net.sqlite"), "layout"))
    assert finding.gpu_ns == pytest.approx(2 * MS)
    assert "of all convolutions 20" in finding.evidence
    assert "channels_last" in finding.remedy
    without = [("forward", [(conv, 8 * MS), (SILU, MS)])]
    assert findings(ranges(3, without).write(tmp_path / "nhwc.sqlite"), "layout") == []


def test_training_in_fp32_without_operators_gets_autocast(tmp_path):
    layer = [(SGEMM, 20 * MS), (ATTENTION, 5 * MS), (MUL, MS), (SGEMM, 20 * MS)]
    work = [("forward", layer), ("backward", [(SGEMM, 40 * MS)]), ("optimizer", [(MUL, MS)])]
    path = ranges(5, work).write(tmp_path / "x.sqlite")
    finding = only(findings(path, "no-tensor-cores"))
    assert finding.what.startswith("Matrix products and attention run in fp32")
    assert finding.remedy == 'torch.autocast("cuda", dtype=torch.bfloat16)'
    # Half of the ratio of the peaks; attention multiplies with three products of TF32.
    products, attention = 80 * (1 - 2 * 19.5 / 312), 5 * (1 - 2 * 52 / 312)
    assert finding.gpu_ns == pytest.approx((products + attention) * MS, rel=1e-3)
    assert "half of the ratio of the peaks" in finding.why
    advised = list(fastprof.open(path, copies=True).advise().rows())
    assert advised[0]["id"] == "no-tensor-cores"
    assert advised[0]["saving_ns"] > 0.7 * 87 * MS


def test_products_alone_get_tf32(tmp_path):
    path = ranges(3, [("forward", [(SGEMM, 20 * MS)])]).write(tmp_path / "x.sqlite")
    assert "set_float32_matmul_precision" in only(findings(path, "no-tensor-cores")).remedy


def norm(ns: int) -> list[Work]:
    return [(POW, ns), (MEAN, ns), (RSQRT, ns), (MUL, ns), (SILU, ns)]


def test_pointwise_kernels_by_the_hundred_are_named(tmp_path):
    gemm = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
    path = ranges(3, [("model", [*norm(20_000) * 24, (gemm, 2 * MS)])]).write(tmp_path / "x.sqlite")
    finding = only(findings(path, "unfused-pointwise"))
    assert "RMSNorm" in finding.what and "SiLU" in finding.what
    assert "rotary" not in finding.what
    assert "torch.compile" in finding.remedy and "Liger" in finding.remedy
    assert finding.gpu_ns == pytest.approx(1.2 * MS)  # half of 120 kernels of 20 us
    few = ranges(3, [("model", [*norm(20_000), (gemm, 50_000)])]).write(tmp_path / "few.sqlite")
    assert not findings(few, "unfused-pointwise")
    large = ranges(3, [("model", [*norm(20_000) * 24, (gemm, 40 * MS)])])
    assert not findings(large.write(tmp_path / "large.sqlite"), "unfused-pointwise")


def test_kernels_of_other_programs_are_not_torchs_to_fuse(tmp_path):
    own = [("my_pointwise_kernel", 20_000)] * 200
    path = ranges(3, [("loop", own)]).write(tmp_path / "x.sqlite")
    assert not findings(path, "unfused-pointwise")


def test_compiled_programs_get_their_graph_breaks(tmp_path):
    work = [*norm(20_000) * 24, ("triton_poi_fused_add_0", 2 * MS)]
    path = ranges(3, [("model", work)]).write(tmp_path / "x.sqlite")
    remedy = only(findings(path, "unfused-pointwise")).remedy
    assert "graph_breaks" in remedy and "Liger" not in remedy


@pytest.mark.parametrize("name", ["memset", FILL])
def test_fills_in_succession_are_gradients(tmp_path, name):
    work = [("clear", [(name, 2000)] * 60), ("forward", [(SGEMM, MS)] * 3)]
    finding = only(findings(ranges(4, work).write(tmp_path / "x.sqlite"), "gradient-fills"))
    assert "60 tensors" in finding.what
    assert "set_to_none=True" in finding.remedy
    assert finding.gpu_ns == pytest.approx(60 * 2000)
    between = [("forward", [(name, 2000), (SGEMM, MS)] * 60)]  # workspaces of products
    path = ranges(4, between).write(tmp_path / "between.sqlite")
    assert not findings(path, "gradient-fills")


def test_updates_of_one_parameter_after_the_other(tmp_path):
    addcdiv = NATIVE + "addcdiv_cuda_scalar1_kernel(at::TensorIteratorBase&)::{lambda()#1}>"
    update = [("forward", [(SGEMM, MS)]), ("update", [(addcdiv, 5000)] * 80)]
    finding = only(findings(ranges(3, update).write(tmp_path / "x.sqlite"), "unfused-optimizer"))
    assert "80 parameters" in finding.what
    assert "fused=True" in finding.remedy
    assert finding.gpu_ns == pytest.approx(80 * 2500)


def test_foreach_updates_but_not_fused_ones(tmp_path):
    foreach = FOREACH + "TensorListMetadata<2>, BinaryOpScalarFunctor<float, 2, 1, 1>>"
    fused = FOREACH + "FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4>>"
    for name, n in ((foreach, 1), (fused, 0)):
        work = [("step", [(SGEMM, MS), (name, MS)])]
        path = ranges(3, work).write(tmp_path / f"{n}.sqlite")
        assert len(findings(path, "unfused-optimizer")) == n


@pytest.mark.parametrize(
    ("kernel", "n"),
    [
        ("cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1", 1),
        ("cutlass_80_tensorop_f16_s16816gemm_f16_128x128_32x3_nn_align2", 1),
        ("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8", 0),
        ("cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4", 0),  # tf32: 16 bytes
        ("fmha_cutlassF_f16_notaligned_64x128_rf_sm80(PyTorchMemEffAttention::Params)", 1),
        ("fmha_cutlassF_f16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::Params)", 0),
    ],
)
def test_kernels_for_unaligned_rows(tmp_path, kernel, n):
    file = KinetoFile(deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3",
                                         "computeMajor": 9, "computeMinor": 0}])  # fmt: skip
    shapes = {"dims": [[16, 3137, 64], [16, 64, 3137]], "types": ["c10::BFloat16"] * 2}
    file.op(0, 1000, "aten::bmm", **shapes).launch(10, 20, 1).kernel(2000, 900_000, 1, kernel)
    result = findings(file.write(tmp_path / "x.json"), "unaligned-kernel")
    assert len(result) == n
    for each in result:
        assert "3137 to 3144" in each.remedy
        assert each.gpu_ns > 400_000


def uploads(*, inside: bool, range_: str | None, sizes: list[int]) -> Export:
    """A model whose parameters are copied between its products, or before the first of them."""
    export, now = Export().gpu(), 1_000_000
    order = ["copy", "gemm"] * len(sizes) if inside else ["copy", "gemm"]
    left = iter(sizes)
    for n, what in enumerate([each for each in order for _ in range(1 if inside else len(sizes))]):
        at = 10_000 + 100 * n
        export.launch(at, at + 50, n + 1, 1, "cudaMemcpyAsync" if what == "copy" else "cudaLaunch")
        if what == "copy":
            size = next(left)
            if range_:
                export.push_pop(at - 10, at + 80, range_, tid=1)
            export.copy(now, now + MS, n + 1, 1, size, srcKind=PINNED, dstKind=2)
            now += MS
        else:
            export.kernel(now, now + 50_000, n + 1, name=SGEMM)
            now += 50_000
    return export


EQUAL, UNEQUAL = [25_000_000] * 20, [25_000_000 + 1000 * n for n in range(20)]


@pytest.mark.parametrize(
    ("inside", "range_", "sizes", "is_upload"),
    [
        (True, "FSDP::pre_forward (encoder.block.1)", UNEQUAL, True),
        (True, None, EQUAL, True),  # sizes recur
        (True, None, UNEQUAL, False),
        (False, None, EQUAL, False),  # before the first product: the model is loaded
    ],
)
def test_uploads_of_parameters(tmp_path, inside, range_, sizes, is_upload):
    path = uploads(inside=inside, range_=range_, sizes=sizes).write(tmp_path / "x.sqlite")
    rows = {row["id"]: row for row in fastprof.open(path, copies=True).advise().rows()}
    assert ("parameter-upload" in rows) == is_upload
    # What is copied before the first product is start-up, and left out.
    assert ("exposed-copy" in rows) == (inside and not is_upload)
    if is_upload:
        row = rows["parameter-upload"]
        assert "keep the parameters on the GPU" in row["remedy"]
        assert "next batch" not in row["remedy"]
        assert "at 25.0 GB/s" in row["evidence"]
        assert ("CPUOffload" in row["remedy"]) == (range_ is not None)


def test_gaps_within_replays_of_graphs(tmp_path):
    export = Export().gpu()
    for step in range(4):
        at = 1_000_000 + step * 20 * MS
        export.push_pop(at, at + 19 * MS, f"step {step}", tid=1)
        export.launch(at, at + 5000, step + 1, 1, "cudaGraphLaunch_v10000")
        for node, start in enumerate((10_000, 12 * MS)):
            begin = at + start
            export.kernel(begin, begin + 5 * MS, step + 1, name=SGEMM, graph_node=node + 1)
        export.launch(at + 6000, at + 18 * MS, 100 + step, 1, "cudaDeviceSynchronize_v3020")
    finding = only(findings(export.write(tmp_path / "x.sqlite"), "graph-gaps"))
    assert "--cuda-graph-trace=node" in finding.remedy
    assert not finding.idle_ns


def test_kernels_stand_for_unknown_operators(tmp_path):
    file = KinetoFile(deviceProperties=[{"id": 0, "name": "NVIDIA A100-SXM4-40GB"}])
    file.op(0, 1000, "aten::mm").launch(10, 20, 1).kernel(2000, 3000, 1, SGEMM)
    file.launch(1100, 1200, 2, name="cudaGraphLaunch")
    file.kernel(4000, 94_000, 2, "void aiter::paged_attention_ll4mi<int>(int)")
    file.kernel(95_000, 105_000, 2, MUL)
    profile = fastprof.open(file.write(tmp_path / "x.json"), copies=True)
    for table in (profile.summary(), profile.overview()["ops"]):
        assert table["work"].tolist()[:2] == [
            "paged_attention_ll4mi",
            "vectorized_elementwise_kernel",
        ]
        assert "mm" in table["work"].tolist()


def test_the_lines_of_libraries_below_a_line_that_takes_all(tmp_path):
    file, at = KinetoFile(), 0
    file.python(0, 100_000, "/home/user/train.py(7): main")
    for n, line in enumerate((10, 20, 20)):
        at = 1000 * (n + 1)
        file.python(at, at + 500, f"transformers/model.py({line}): forward")
        file.op(at + 1, at + 400, "aten::mm").launch(at + 10, at + 20, n + 1)
        file.kernel(200_000 + 1000 * n, 200_900 + 1000 * n, n + 1, SGEMM)
    lines = fastprof.open(file.write(tmp_path / "x.json"), copies=True).overview()["lines"]
    assert lines["line"].tolist() == [
        "transformers/model.py:20 forward", "transformers/model.py:10 forward",
    ]  # fmt: skip
    assert lines["gpu_ns"].tolist() == [1800, 900]
    heading = next(heading for heading in lines.headings if heading.key == "line")
    assert heading.header.startswith("below ") and heading.header.endswith("train.py:7")
