"""Which kind of program a capture is of, and that advice fits the kind."""

from typing import Any

import pytest

import fastprof
from fastprof.profile import program as kinds
from fastprof.profile.program import Program
from fastprof.writers.info import describe
from support.exports import PID, Export, global_tid
from support.expressions import alternatives
from support.kineto_files import KinetoFile
from support.program_texts import TORCH_WORDS, all_texts

US = 1000
AT = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>(int)"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
# Kernels and ranges, as these programs record them.
PROGRAMS: dict[str, tuple[list[str], list[str], str]] = {
    "RAPIDS": (["void cudf::detail::copy_kernel<int>(int*)", "cupy_add"], [], kinds.RAPIDS),
    "CuPy": (["cupy_multiply__float32_float32_float32", "ampere_sgemm_128x64_tn"], [], kinds.CUPY),
    "Numba": (["cudapy::__main__::matmul[abi:v1](Array<float, 2>)"], [], kinds.NUMBA),
    "JAX": (["loop_add_fusion_4", "ampere_sgemm_128x64_tn", "wrapped_add"], [], kinds.JAX),
    "JAX by ranges": (["add_1"], ["TSL:XlaModule:#hlo_module=jit_f,program_id=1#"], kinds.JAX),
    "TensorFlow": (
        ["void tensorflow::functor::Bias<float>(int)", "loop_add_fusion"],
        [],
        kinds.TENSORFLOW,
    ),
    "MXNet": (
        ["void mxnet::op::mxnet_op::mxnet_generic_kernel<mxnet::op::plus>(int)"],
        [],
        kinds.MXNET,
    ),
    "TensorRT": (["trt_ampere_h16816"], ["ExecutionContext::enqueueV3"], kinds.ENGINE),
    "llama.cpp": (["void mul_mat_q<(ggml_type)2>(int)"], [], kinds.ENGINE),
    "ONNX Runtime": (["void onnxruntime::cuda::gelu<int>(int)"], [], kinds.ENGINE),
    "CUDA C++": (["update(float const*, int)", "ampere_sgemm_128x64_tn"], [], kinds.CUDA),
}


def capture(kernels: list[str], ranges: list[str] = [], process: str = "") -> Export:  # noqa: B006
    """60 rounds of short kernels that wait, allocate and copy from pageable memory."""
    export = Export().gpu()
    corr = at = 0

    def call(name: str, ns: int) -> int:
        nonlocal corr, at
        corr, at = corr + 1, at + ns
        export.launch(at - ns, at, corr, tid=1, name=name)
        return at

    for _ in range(60):
        for name in ranges:
            export.push_pop(at, at + 300 * US, name, tid=1)
        for name in (kernels * 12)[:12]:
            begin = call("cudaLaunchKernel_v7000", 5 * US)
            export.kernel(begin + 3 * US, begin + 5 * US, corr, name=name, demangled=name)
        end = call("cudaMemcpy_v3020", 200 * US)
        export.copy(end - 150 * US, end - 5 * US, corr, 1, 10**6, srcKind=0, dstKind=2)
        call("cudaMalloc_v3020", 90 * US)
        call("cudaFree_v3020", 90 * US)
        call("cudaDeviceSynchronize_v3020", 80 * US)
        at += 200 * US
    if process:
        export.row("PROCESSES", globalPid=global_tid(PID, 0), pid=PID, name=process)
    return export


@pytest.mark.parametrize("name", PROGRAMS)
def test_kinds_by_names(name, opened):
    kernels, ranges, kind = PROGRAMS[name]
    result = opened(capture(kernels, ranges)).contents.program
    assert (result.kind, result.name) == (kind, name.removesuffix(" by ranges"))
    shown = result.evidence.split("; ")[0].removeprefix("kernel ").removeprefix("range ")
    assert any(each.startswith(shown) for each in [*kernels, *ranges])


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_text_of_another_program_is_for_torch(name, opened):
    kernels, ranges, _ = PROGRAMS[name]
    profile = opened(capture([*kernels, NCCL], ranges))
    ids = set(profile.report("advise")["id"].tolist())
    assert {"alloc", "sync", "exposed-copy"} <= ids
    text = all_texts(profile)
    assert not TORCH_WORDS.findall(text)
    assert name.removesuffix(" by ranges") in text.splitlines()[0] + text


def test_the_same_capture_of_torch_has_remedies_for_torch(opened):
    assert TORCH_WORDS.search(all_texts(opened(capture([AT]))))


@pytest.mark.parametrize(
    ("kernels", "process", "kind"),
    [
        (["ampere_sgemm_128x64_tn"], "", kinds.UNKNOWN),
        (["ampere_sgemm_128x64_tn"], "python3", kinds.UNKNOWN),
        (["ampere_sgemm_128x64_tn"], "./solver", kinds.CUDA),
        (["update"], "", kinds.UNKNOWN),
        (["update"], "./solver", kinds.CUDA),
        (["update(int*)"], "python3", kinds.OTHER),
        ([AT, "update(int*)"], "./solver", kinds.INFERENCE),
        ([AT, "void vllm::rms_norm_kernel<float>(int)"], "python3", kinds.SERVING),
    ],
)
def test_processes_tell_what_kernels_do_not(kernels, process, kind, opened):
    assert opened(capture(kernels, process=process)).contents.program.kind == kind


def kineto(*names: str, kernel: str = AT, python: str = "", seq: int | None = None) -> KinetoFile:
    trace = KinetoFile()
    for i, name in enumerate(names):
        if python:
            trace.python(i * 100, i * 100 + 90, python)
        trace.op(i * 100, i * 100 + 90, name, seq=seq)
        trace.launch(i * 100 + 10, i * 100 + 20, i)
        trace.kernel(i * 100 + 30, i * 100 + 40, i, kernel)
    return trace


@pytest.mark.parametrize(
    ("trace", "kind", "name"),
    [
        (kineto("aten::mm", "Optimizer.step#Adam.step"), kinds.TRAINING, "PyTorch training"),
        (kineto("aten::mm"), kinds.INFERENCE, "PyTorch inference"),
        (kineto("aten::mm", seq=3), kinds.TORCH, "PyTorch"),
        (
            kineto("aten::mm", python="/x/vllm/v1/worker/gpu_worker.py(7): execute_model"),
            kinds.SERVING,
            "vLLM",
        ),
        (
            kineto(
                "aten::mm",
                python="/x/sglang/srt/managers/scheduler.py(7): run",
                kernel="void vllm::rms_norm_kernel<float>(int)",
            ),
            kinds.SERVING,
            "SGLang",
        ),
        (
            kineto("aten::mm", "MulBackward0", python="/x/vllm/worker.py(7): f"),
            kinds.TRAINING,
            None,
        ),
    ],
)
def test_kinds_of_torch(trace, kind, name, tmp_path):
    result = fastprof.open(trace.write(tmp_path / "x.json")).contents.program
    assert (result.kind, result.name) == (kind, name or "PyTorch training")


def test_json_names_the_program(opened):
    profile = opened(capture(["cupy_add"]))
    expected = {"kind": "cupy", "name": "CuPy", "evidence": "kernel cupy_add"}
    assert profile.report("advise").facts["program"] == expected
    assert profile.report("overview").facts["program"] == expected
    assert describe(profile)["program"] == expected


def test_texts_for_hip_are_those_of_cuda():
    texts = {kinds.CUDA: "cudaMemcpyAsync in a CUDA graph", kinds.OTHER: "other"}
    assert Program(kinds.HIP).choose(texts) == "hipMemcpyAsync in a HIP graph"
    assert Program(kinds.JAX).choose(texts) == "other"
    assert Program(kinds.INFERENCE).choose({kinds.TORCH: "torch", **texts}) == "torch"
    assert Program(kinds.SERVING, "vLLM").choose({"vLLM": "own", **texts}) == "own"


def remedy(profile: fastprof.Profile, rule: str) -> str:
    (row,) = [row for row in profile.report("advise").rows() if row["id"] == rule]
    return str(row["remedy"])


def waiting(name: str, kernel: str, copy: dict[str, Any] | None = None) -> Export:
    """Rounds in which the host waits in a call, then launches one kernel."""
    export = Export().gpu()
    for i in range(20):
        at, corr = i * 1000 * US, 3 * i
        export.launch(at, at + 5 * US, corr + 1, tid=1)
        export.kernel(at + 10 * US, at + 300 * US, corr + 1, name=kernel, demangled=kernel)
        export.launch(at + 6 * US, at + 900 * US, corr + 2, tid=1, name=name)
        if copy is not None:
            export.copy(at + 300 * US, at + 400 * US, corr + 2, **copy)
    return export


PAGEABLE = {"kind": 1, "n_bytes": 10**6, "srcKind": 0, "dstKind": 2}
PINNED = {"kind": 1, "n_bytes": 10**6, "srcKind": 1, "dstKind": 2}
RESULT = {"kind": 2, "n_bytes": 10**6, "srcKind": 2, "dstKind": 0}
VALUE = {"kind": 2, "n_bytes": 4, "srcKind": 2, "dstKind": 0}
OWN = "update(float*, int)"


@pytest.mark.parametrize(
    ("call", "kernel", "copy", "wanted", "not_wanted"),
    [
        ("cudaDeviceSynchronize", AT, None, "torch.cuda.synchronize()", "pinned"),
        ("cudaStreamSynchronize", AT, None, "cudaStreamSynchronize: ", "pinned"),
        ("cudaEventSynchronize", OWN, None, "cudaStreamWaitEvent", "pinned"),
        ("cudaMemcpy", AT, PAGEABLE, "from pinned memory with .to(device", "already"),
        ("cudaMemcpy", AT, PINNED, "pinned already", "from pinned memory"),
        ("cudaMemcpy", AT, RESULT, ".cpu()", ".to(device"),
        ("cudaMemcpy", AT, VALUE, ".item()", ".cpu()"),
        ("cudaMemcpy", OWN, PAGEABLE, "cudaMallocHost", "already"),
        ("cudaMemcpy", OWN, PINNED, "pinned already", "cudaMallocHost"),
        ("cudaMemcpy", OWN, RESULT, "copy results with cudaMemcpyAsync", "single values"),
        ("cudaMemcpy", OWN, VALUE, "single values", "copy results"),
    ],
)
def test_waits_have_the_remedy_of_their_call_and_memory(
    call, kernel, copy, wanted, not_wanted, opened
):
    text = remedy(opened(waiting(call, kernel, copy)), "sync")
    assert wanted in text
    assert not_wanted not in text


def test_low_occupancy_of_an_own_kernel(opened):
    export = Export().gpu()
    for i in range(10):
        begin = i * 200 * US
        export.launch(begin, begin + 5 * US, i + 1, tid=1)
        export.kernel(
            begin + 10 * US, begin + 150 * US, i + 1, name="update", demangled=OWN,
            block=(256, 1, 1), registersPerThread=255,
        )  # fmt: skip
    (row,) = [row for row in opened(export).report("advise").rows() if row["id"] == "low-occupancy"]
    # 65536 registers hold 8 warps of 255, rounded up to 256 x 32: one block of 8 of 64 warps.
    assert row["what"].startswith("At most 12% of the warps")
    assert "255 registers in each of 256 threads" in row["evidence"]
    assert "__launch_bounds__" in row["remedy"]


@pytest.mark.parametrize(("streams", "offset", "found"), [
    ((7, 13), 100, True),  # one after the other
    ((7, 13), 0, False),  # at once
    ((7, 7), 100, False),  # one stream
])  # fmt: skip
def test_the_default_stream_keeps_others_waiting(streams, offset, found, opened):
    export = Export().gpu()
    for i in range(20):
        begin, corr = i * 250 * US, 2 * i
        for k, stream in enumerate(streams):
            at = begin + k * offset * US
            export.launch(at, at + 5 * US, corr + k + 1, tid=1)
            export.kernel(
                at + 10 * US, at + 100 * US, corr + k + 1, name="f", demangled=OWN, stream=stream
            )
    ids = opened(export).report("advise")["id"].tolist()
    assert ("default-stream" in ids) == found


def test_each_form_of_a_name_contains_a_word_that_is_looked_for_first():
    marks = [*kinds._ENGINES, kinds._TORCH, *kinds._FRAMEWORKS, kinds._TRAINS, kinds._COMPILED]
    assert sum(mark.words != ("",) for mark in marks) > 8
    for mark in marks:
        for pattern in filter(None, (mark.kernels, mark.ranges)):
            for form in alternatives(pattern):
                assert any(word in form.lower() for word in mark.words), (mark, form)
    for form in alternatives(kinds._SHARES.pattern):
        assert any(word in form.lower() for word in kinds._SHARING), form
