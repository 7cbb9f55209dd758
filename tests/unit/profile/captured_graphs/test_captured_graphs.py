"""Kernels of replayed CUDA and HIP graphs get the calls made in the capture."""

import json

import pytest

import fastprof
from fastprof.cli import main
from fastprof.errors import BadInputError
from support.exports import Export
from support.kineto_files import KinetoFile
from support.real_data import real

FP16 = ["c10::Half", "c10::Half"]
NAMES = ["gather", "Cijk_gemm_a", "silu", "Cijk_gemm_b"]
OPS = ["aten::embedding", "aten::mm", "aten::silu", "aten::mm"]


def dims(op: str, batch: int) -> dict[str, object]:
    if op == "aten::mm":
        return {"dims": [[batch, 16], [16, 4]], "types": FP16}
    return {"dims": [[batch, 16]], "types": FP16[:1]}


def put(trace: KinetoFile, at: int, op: str, name: str | None, *, batch: int = 32, tid: int = 1,
        hip: bool = True, call: str | None = None, **sizes: object) -> KinetoFile:  # fmt: skip
    """An operator of 10 ns that adds a kernel to the graph."""
    trace.op(at, at + 10, op, tid=tid, **dims(op, batch))
    call = call or ("hipLaunchKernel" if hip else "cudaLaunchKernel")
    kernel = name if hip else None
    return trace.launch(at + 2, at + 4, 5000 + at, tid, call, kernel=kernel, **sizes)


def capture(trace: KinetoFile, at: int = 1000, names=NAMES, ops=OPS, *, hip: bool = True,
            label: str = "capture", **how) -> KinetoFile:  # fmt: skip
    """The capture of a graph in the range `label`, with one module range per call."""
    lib = "hip" if hip else "cuda"
    end = at + 20 * len(names) + 10
    trace.annotation(at - 10, end + 10, label)
    trace.launch(at, at + 1, 4000 + at, name=f"{lib}StreamBeginCapture")
    for i, (name, op) in enumerate(zip(names, ops, strict=True)):
        begin = at + 5 + 20 * i
        trace.python(begin - 1, begin + 12, f"model.py({i}): layer{i}")
        put(trace, begin, op, name, hip=hip, **how)
    return trace.launch(end, end + 1, 4001 + at, name=f"{lib}StreamEndCapture")


def replay(
    trace: KinetoFile, at: int = 100_000, names=NAMES, *, hip: bool = True, corr: int = 9,
    label=None, streams=None, grid=None, nodes=None, order=None, **sizes: object,
) -> KinetoFile:  # fmt: skip
    """A launch of a graph and its kernels, 10 ns each."""
    if label is not None:
        trace.annotation(at - 10, at + 30, label)
    trace.launch(at, at + 20, corr, name="hipGraphLaunch" if hip else "cudaGraphLaunch")
    for i, name in enumerate(names):
        place = i if order is None else order[i]
        others = sizes if nodes is None else {"graph node id": nodes[i]}
        trace.kernel(at + 100 + 20 * place, at + 110 + 20 * place, corr, name, grid=grid,
                     stream=streams[i] if streams else 7, **others)  # fmt: skip
    return trace


@pytest.fixture
def opened(tmp_path):
    """The profile of a trace with captures in other files, one.json, two.json, ..."""

    def read(trace, *captures, **options) -> fastprof.Profile:
        files = [each.write(tmp_path / f"{i}.json") for i, each in enumerate(captures)]
        return fastprof.open(trace.write(tmp_path / "replay.json"), graph_capture=files, **options)

    return read


def columns(profile: fastprof.Profile, *keys: str) -> list[object]:
    result = [tuple(row[key] for key in keys) for row in profile.rows()]
    return result if len(keys) > 1 else [value for (value,) in result]


def test_kernels_of_a_replay_have_the_calls_of_the_capture(opened):
    profile = opened(replay(KinetoFile()), capture(KinetoFile()))
    assert columns(profile, "kernel", "op", "dir", "params") == [
        ("gather", "embedding", "fprop", "T=[(32,16)],['float16']"),
        ("Cijk_gemm_a", "mm", "fprop", "M=4,N=32,K=16,fp16,"),
        ("silu", "silu", "fprop", "[32,16]fp16"),
        ("Cijk_gemm_b", "mm", "fprop", "M=4,N=32,K=16,fp16,"),
    ]
    assert columns(profile, "flops")[1] == 2 * 32 * 16 * 4
    assert columns(profile, "trace") == [(f"model.py:{i} layer{i}",) for i in range(4)]
    assert set(columns(profile, "launch", "ranges", "tid")) == {("hipGraphLaunch", ("capture",), 1)}
    assert profile.check().startswith("4 kernel rows")


def test_what_came_of_it_is_said(opened, tmp_path):
    profile = opened(replay(KinetoFile()), capture(KinetoFile()))
    told = profile.graph_capture
    assert (told.launches, told.kernels, told.replayed, told.matched) == (1, 4, 1, 4)
    assert (told.captures, told.rate, told.by_name) == (1, 1.0, True)
    assert str(told) == (
        "4 of 4 kernels of 1 graph launch take their call from 1 capture in "
        f"{tmp_path / '0.json'}, match rate 100.0 % by name and order"
    )


def test_what_the_file_holds_is_that_file_alone(opened, tmp_path):
    lender = capture(KinetoFile()).annotation(0, 9000, "ProfilerStep#7")
    lender.op(0, 90, "aten::mm", tid=77, seq=5)
    trace = replay(KinetoFile(), label="execute")
    profile = opened(trace, lender)
    alone = fastprof.open(tmp_path / "replay.json")
    assert profile.contents == alone.contents
    assert len(profile.about.steps) == 0
    assert profile.contents.shapes is False and profile.coverage.known["shapes"] == 40


def test_each_launch_makes_the_calls_again(opened):
    trace = KinetoFile()
    for i in range(3):
        replay(trace, 100_000 * (i + 1), corr=9 + i)
    profile = opened(trace, capture(KinetoFile()))
    products = [row for row in columns(profile, "op", "flops") if row[0] == "mm"]
    assert products == 6 * [("mm", 2 * 32 * 16 * 4)]
    assert profile.graph_capture.matched == 12


def test_work_around_the_graph_keeps_its_own_call(opened):
    trace = replay(KinetoFile()).op(10, 50, "aten::relu", dims=[[3]], types=["float"])
    trace.launch(20, 25, 3).kernel(60, 70, 3, "relu")
    profile = opened(trace, capture(KinetoFile()))
    assert columns(profile, "op") == ["relu", "embedding", "mm", "silu", "mm"]
    assert profile.graph_capture.kernels == 4


def test_a_capture_in_the_same_file_needs_no_option(tmp_path):
    path = replay(capture(KinetoFile())).write(tmp_path / "x.json")
    profile = fastprof.open(path)
    assert columns(profile, "op") == ["embedding", "mm", "silu", "mm"]
    assert profile.graph_capture.files == ()
    assert "in the same file" in str(profile.graph_capture)


def test_a_capture_comes_before_its_replay(tmp_path):
    trace = capture(replay(KinetoFile(), at=100, corr=1), at=10_000)
    profile = fastprof.open(replay(trace, corr=2).write(tmp_path / "x.json"))
    assert columns(profile, "op") == [None] * 4 + ["embedding", "mm", "silu", "mm"]
    assert profile.graph_capture.replayed == 1


def test_backward_work_of_a_capture_has_its_forward_call(opened):
    lender = KinetoFile().launch(0, 1, 1, name="hipStreamBeginCapture")
    lender.python(5, 100, "nn.Module: Linear_0").op(
        10, 40, "aten::mm", seq=4, **dims("aten::mm", 8)
    )
    lender.launch(20, 22, 11, name="hipLaunchKernel", kernel="forward_gemm")
    lender.op(200, 290, "MmBackward0", tid=2, seq=4)
    lender.launch(210, 212, 12, 2, "hipLaunchKernel", kernel="backward_gemm")
    lender.launch(400, 401, 2, name="hipStreamEndCapture")
    trace = replay(KinetoFile(), names=["forward_gemm", "backward_gemm"])
    trace.op(100_200, 100_300, "aten::relu", seq=4, tid=3)  # the same number, of another run
    profile = opened(trace, lender)
    assert columns(profile, "dir", "op", "layer", "seq") == [
        ("fprop", "mm", ("Linear_0",), 4),
        ("bprop", "mm", ("Linear_0",), 4),
    ]


def test_a_capture_of_another_graph_in_the_same_file_is_not_used_and_said(tmp_path):
    trace = replay(capture(KinetoFile()), names=["other", "kernels", "of", "another"])
    profile = fastprof.open(trace.write(tmp_path / "x.json"))
    assert columns(profile, "op") == [None] * 4
    assert profile.graph_capture.matched == 0 and profile.graph_capture.rate is None
    (warning,) = profile.warnings
    assert "no capture matches 1 of 1 graph launch to at least 95.0 %" in warning


def test_without_a_capture_nothing_is_said(tmp_path):
    profile = fastprof.open(replay(KinetoFile()).write(tmp_path / "x.json"))
    assert profile.graph_capture is None and profile.warnings == []


def test_eager_work_within_a_capture_is_not_captured(opened):
    lender = capture(KinetoFile())
    lender.op(1006, 1008, "aten::add", tid=2, dims=[[1]]).launch(1007, 1008, 33, tid=2)
    lender.kernel(2000, 2010, 33, "gather")
    profile = opened(replay(KinetoFile()), lender)
    assert profile.graph_capture.rate == 1.0


def test_calls_of_the_backward_thread_belong_to_the_capture(opened):
    lender = KinetoFile().launch(0, 1, 1, name="hipStreamBeginCapture")
    put(lender, 10, "aten::mm", "first")
    put(lender, 30, "aten::mm", "second", tid=2)
    put(lender, 50, "aten::mm", "third")
    lender.launch(90, 91, 2, name="hipStreamEndCapture")
    profile = opened(replay(KinetoFile(), names=["first", "second", "third"]), lender)
    assert profile.graph_capture.rate == 1.0


def test_two_captures_at_the_same_time_are_two_graphs(opened):
    lender = KinetoFile()
    for tid in (1, 2):
        lender.launch(tid, tid + 1, tid, tid, name="hipStreamBeginCapture")
        put(lender, 10 + tid, "aten::mm", f"of{tid}", tid=tid)
        lender.launch(90 + tid, 91 + tid, 10 + tid, tid, name="hipStreamEndCapture")
    trace = replay(KinetoFile(), names=["of2"])
    assert opened(trace, lender).graph_capture.rate == 1.0


@pytest.mark.parametrize("lacks", ["hipStreamBeginCapture", "hipStreamEndCapture"])
def test_a_capture_that_the_trace_begins_or_ends_in_is_one(opened, lacks):
    lender = capture(KinetoFile())
    lender.events = [event for event in lender.events if event["name"] != lacks]
    assert opened(replay(KinetoFile()), lender).graph_capture.rate == 1.0


def test_a_capture_without_its_begin_and_end_is_what_started_no_work(opened):
    lender = KinetoFile()
    for i, batch in enumerate((64, 32)):
        names = [f"{name}_{batch}" for name in NAMES]
        capture(lender, 1000 + 1000 * i, names, batch=batch)
        lender.launch(1900 + 1000 * i, 1910 + 1000 * i, 77 + i, name="hipGraphInstantiate")
    lender.events = [event for event in lender.events if "Capture" not in event["name"]]
    lender.op(5000, 5020, "aten::fill_").launch(5005, 5006, 90).kernel(6000, 6010, 90, "fill")
    trace = replay(KinetoFile(), names=[f"{name}_32" for name in NAMES])
    profile = opened(trace, lender)
    assert columns(profile, "params")[1] == "M=4,N=32,K=16,fp16,"
    assert profile.graph_capture.rate == 1.0


def many(n: int) -> list[str]:
    return [f"kernel{i % 7}" for i in range(n)]


def test_kernels_that_one_side_lacks_are_left_out(opened):
    names = many(60)
    ran = [*names[:20], "memory_pool_fill", *names[20:40], *names[41:]]
    lender = capture(KinetoFile(), names=names, ops=["aten::mm"] * 60)
    profile = opened(replay(KinetoFile(), names=ran), lender)
    told = profile.graph_capture
    assert (told.matched, told.kernels, told.rate) == (59, 60, 59 / 60)
    assert "match rate 98.3 %" in str(told)
    lines = columns(profile, "trace")
    assert lines[20] == () and lines[19] == ("model.py:19 layer19",)
    assert lines[21] == ("model.py:20 layer20",) and lines[-1] == ("model.py:59 layer59",)


def test_below_95_percent_it_is_refused(opened, tmp_path):
    names = many(60)
    lender = capture(KinetoFile(), names=names, ops=["aten::mm"] * 60)
    ran = [f"other{i}" if i % 15 == 0 else name for i, name in enumerate(names)]
    with pytest.raises(BadInputError) as refused:
        opened(replay(KinetoFile(), names=ran), lender)
    text = str(refused.value)
    assert text.startswith(f"{tmp_path / '0.json'}: expected captures of the graphs that ")
    assert "at least 95.0 %" in text and "found at most 93.3 % with equal names" in text
    assert "60 kernels in the launch and 60 calls in the capture" in text


def test_equal_names_in_another_order_are_refused(opened):
    names = [f"kernel{i}" for i in range(40)]
    lender = capture(KinetoFile(), names=names, ops=["aten::mm"] * 40)
    with pytest.raises(BadInputError, match=r"by name, order and grid; found at most 100\.0 %"):
        opened(replay(KinetoFile(), names=names[20:] + names[:20]), lender)


def test_kernels_of_several_streams_may_run_in_any_order(opened):
    order = [0, 2, 1, 3]
    trace = replay(KinetoFile(), streams=[7, 8, 7, 8], order=order)
    profile = opened(trace, capture(KinetoFile()))
    assert columns(profile, "kernel", "trace") == [
        (NAMES[i], (f"model.py:{i} layer{i}",)) for i in (0, 2, 1, 3)
    ]


def test_of_several_captures_the_best_is_taken(opened):
    lender = KinetoFile()
    for i, batch in enumerate((64, 32, 16)):
        names = [f"{name}_{batch}" for name in NAMES]
        capture(lender, 1000 + 1000 * i, names, batch=batch)
    trace = KinetoFile()
    replay(trace, 100_000, [f"{name}_16" for name in NAMES], corr=1)
    replay(trace, 200_000, [f"{name}_32" for name in NAMES], corr=2)
    profile = opened(trace, lender)
    assert profile.graph_capture.captures == 2
    assert [params for params in columns(profile, "params") if params.startswith("M")] == [
        *["M=4,N=16,K=16,fp16,"] * 2,
        *["M=4,N=32,K=16,fp16,"] * 2,
    ]


def test_captures_come_from_several_files_and_directories(tmp_path):
    (tmp_path / "traces").mkdir()
    for batch in (16, 32):
        names = [f"{name}_{batch}" for name in NAMES]
        trace = capture(KinetoFile(), names=names, batch=batch)
        trace.write(tmp_path / "traces" / f"bs_{batch}.json.gz")
    (tmp_path / "traces" / "notes.txt").write_text("none")
    path = replay(KinetoFile(), names=[f"{n}_16" for n in NAMES]).write(tmp_path / "x.json")
    profile = fastprof.open(path, graph_capture=tmp_path / "traces")
    assert columns(profile, "params")[1] == "M=4,N=16,K=16,fp16,"
    assert profile.graph_capture.files == (str(tmp_path / "traces" / "bs_16.json.gz"),)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInputError, match="found 0 other files"):
        fastprof.open(path, graph_capture=tmp_path / "empty")


def two_sizes(**how) -> KinetoFile:
    lender = KinetoFile()
    for i, batch in enumerate((64, 32)):
        capture(lender, 1000 + 1000 * i, batch=batch, label=f"capture_{batch}_DECODE", **how)
    return lender


def test_captures_that_differ_in_shapes_only_are_told_apart_by_the_numbers_of_ranges(opened):
    for batch in (64, 32):
        trace = replay(KinetoFile(), label=f"decode {batch} sequences")
        profile = opened(trace, two_sizes())
        assert columns(profile, "params")[1] == f"M=4,N={batch},K=16,fp16,"


def test_the_size_of_a_graph_may_be_in_the_name_of_the_file(tmp_path):
    for batch in (64, 32, 16):
        for rank in (0, 1):
            trace = capture(KinetoFile(), batch=batch)
            trace.write(tmp_path / f"bs_{batch}_rank{rank}.json.gz")
    for batch in (16, 17, 40):
        path = replay(KinetoFile(), label=f"step[DECODE bs={batch}]").write(tmp_path / "x.trace")
        profile = fastprof.open(path, graph_capture=tmp_path)
        size = min(size for size in (64, 32, 16) if size >= batch)
        assert columns(profile, "params")[1] == f"M=4,N={size},K=16,fp16,"


@pytest.mark.parametrize(
    "label",
    ["execute_20_context_0(sq0sk64)_generation_20(sq20sk64)",
     "execute_context_1(16)_generation_4(4)", "step[DECODE bs=20]", "step[EXTEND bs=2 toks=20]"],
)  # fmt: skip
def test_a_batch_is_padded_to_the_next_size_that_was_captured(opened, label):
    trace = replay(KinetoFile(), label=label)
    assert columns(opened(trace, two_sizes()), "params")[1] == "M=4,N=32,K=16,fp16,"
    with pytest.raises(BadInputError, match="no capture matches 1 of 1"):
        opened(replay(KinetoFile(), label="execute_65_context_65()"), two_sizes())


def test_captures_that_nothing_tells_apart_are_not_used(opened):
    with pytest.raises(
        BadInputError, match="several captures with different operators or shapes match 1"
    ):
        opened(replay(KinetoFile()), two_sizes())


def test_launches_in_a_row_replay_captures_in_a_row(opened):
    lender, trace = KinetoFile(), KinetoFile()
    for i in range(3):  # layers of one model, one graph each
        names, ops = [f"rare{i}" if i < 1 else "often", "silu"], ["aten::relu", "aten::silu"]
        trace_of = capture(lender, 1000 + 1000 * i, names, ops)
        trace_of.python(990 + 1000 * i, 1100 + 1000 * i, f"nn.Module: Layer_{i}")
    for i, name in enumerate(["rare0", "often", "often", "rare0", "often", "often"]):
        replay(trace, 100_000 + 1000 * i, [name, "silu"], corr=i)
    layers = columns(opened(trace, lender), "layer")
    assert layers[::2] == [(f"Layer_{i}",) for i in (0, 1, 2, 0, 1, 2)]


def test_sizes_that_the_replay_does_not_tell_are_those_of_the_capture(opened):
    lender = capture(KinetoFile(), grid=[64, 1, 2], block=[256, 1, 1])
    trace = replay(KinetoFile(), block=None)
    trace.launch(10, 20, 3).kernel(30, 40, 3, "eager")
    profile = opened(trace, lender)
    assert columns(profile, "grid", "block", "stream", "kernel") == [
        ((2, 3, 4), (128, 1, 1), 7, "eager"),
        *(((64, 1, 2), (256, 1, 1), 7, name) for name in NAMES),
    ]
    trace = replay(KinetoFile(), grid=[64, 1, 2])
    assert columns(opened(trace, lender), "block") == [(128, 1, 1)] * 4


def test_another_grid_is_another_graph(opened):
    lender = capture(KinetoFile(), grid=[64, 1, 1])
    assert opened(replay(KinetoFile(), grid=[64, 1, 1]), lender).graph_capture.rate == 1.0
    with pytest.raises(BadInputError, match="expected captures"):
        opened(replay(KinetoFile(), grid=[32, 1, 1]), lender)


def test_copies_and_fills_of_the_graph_have_rows_where_these_are_asked_for(opened):
    lender = KinetoFile().launch(0, 1, 1, name="hipStreamBeginCapture")
    put(lender, 10, "aten::copy_", None, call="hipMemcpyAsync")
    put(lender, 30, "aten::zero_", None, call="hipMemsetAsync")
    put(lender, 50, "aten::mm", "gemm")
    lender.launch(90, 91, 2, name="hipStreamEndCapture")
    as_kernels = replay(KinetoFile(), names=["__amd_rocclr_copyBuffer", "__amd_rocclr_fillBuffer",
                                             "gemm"])  # fmt: skip
    assert columns(opened(as_kernels, lender), "op") == ["copy_", "zero_", "mm"]
    trace = replay(KinetoFile(), names=["gemm"]).copy(100_090, 100_095, 9, "Memset (Device)", 8)
    trace.copy(100_080, 100_085, 9, "Memcpy DtoD (Device -> Device)", 8)
    assert columns(opened(trace, lender, copies=False), "op") == ["mm"]
    assert columns(opened(trace, lender), "op") == ["copy_", "zero_", "mm"]


# Captures of CUDA: calls without kernel names.


KERNELS = ["at::native::gather", "ampere_sgemm", "at::native::silu_kernel", "ampere_sgemm"]


def test_without_names_number_and_order_are_compared(opened):
    profile = opened(
        replay(KinetoFile(), names=KERNELS, hip=False), capture(KinetoFile(), hip=False)
    )
    assert columns(profile, "op") == ["embedding", "mm", "silu", "mm"]
    assert str(profile.graph_capture).endswith("100.0 % by order and number, without names")
    with pytest.raises(
        BadInputError, match=r"agree in number .* 5 kernels in the launch and 4 calls"
    ):
        trace = replay(KinetoFile(), names=[*KERNELS, "one_more"], hip=False)
        opened(trace, capture(KinetoFile(), hip=False))


def test_without_names_a_copy_more_changes_nothing_for_kernels(opened):
    lender = KinetoFile().launch(0, 1, 1, name="cudaStreamBeginCapture")
    for i in range(40):
        put(lender, 10 + 20 * i, "aten::mm", None, hip=False)
    put(lender, 815, "aten::zero_", None, hip=False, call="cudaMemsetAsync")  # of no bytes
    lender.launch(900, 901, 2, name="cudaStreamEndCapture")
    trace = replay(KinetoFile(), names=["ampere_sgemm"] * 40, hip=False)
    told = opened(trace, lender, copies=True).graph_capture
    assert (told.matched, told.rate) == (40, 1.0)
    trace.copy(200_000, 200_010, 9, "Memset (Device)", 8).copy(200_020, 200_030, 9, "Memset", 8)
    told = opened(trace, lender, copies=True).graph_capture
    assert (told.matched, told.rate) == (40, 40 / 42)


def test_without_names_operators_tell_whose_kernels_these_cannot_be(opened):
    wrong = ["ampere_sgemm", "softmax_warp_forward", "ampere_sgemm", "nchw_batch_norm_fwd"]
    with pytest.raises(BadInputError, match=r"no capture matches 1 of 1 graph launch to at"):
        opened(replay(KinetoFile(), names=wrong, hip=False), capture(KinetoFile(), hip=False))


def test_without_names_triton_operators_are_named_as_their_kernels(opened):
    ops = ["triton_poi_fused_add_0", "triton_red_fused_sum_1"]
    lender = capture(KinetoFile(), names=[None, None], ops=ops, hip=False)
    assert opened(replay(KinetoFile(), names=ops, hip=False), lender).graph_capture.rate == 1
    with pytest.raises(BadInputError, match="no capture matches 1 of 1"):
        opened(replay(KinetoFile(), names=ops[::-1], hip=False), lender)


def test_without_names_numbers_of_nodes_tell_the_order_of_several_streams(opened):
    how = {"names": KERNELS, "hip": False, "streams": [7, 8, 7, 8], "order": [0, 2, 1, 3]}
    lender = capture(KinetoFile(), hip=False)
    with pytest.raises(BadInputError, match="found kernels of several streams, whose order"):
        opened(replay(KinetoFile(), **how), lender)
    profile = opened(replay(KinetoFile(), **how, nodes=[11, 12, 13, 14]), lender)
    assert columns(profile, "op") == ["embedding", "silu", "mm", "mm"]


# Nsight Systems.


def nsys_capture(pid: int = 100) -> Export:
    export = Export().push_pop(0, 900, "layer:made", tid=1, pid=pid)
    export.launch(10, 11, 1, 1, "cudaStreamBeginCapture_v10000", pid=pid)
    for i, op in enumerate(OPS):
        export.push_pop(100 * i + 20, 100 * i + 90, f"{op}, seq = {i}, sizes = [[32, 16], [16, 4]]",
                        tid=1, pid=pid)  # fmt: skip
        export.launch(100 * i + 40, 100 * i + 45, 10 + i, 1, pid=pid)
    export.launch(800, 801, 2, 1, "cudaStreamEndCapture_v10000", pid=pid)
    return export.launch(810, 815, 50, 1, pid=pid).kernel(820, 830, 50, name="eager", pid=pid)


def nsys_replay() -> Export:
    export = Export().push_pop(0, 100, "replay", tid=1)
    export.launch(10, 20, 7, 1, "cudaGraphLaunch_v10000")
    for i, name in enumerate(KERNELS):
        export.kernel(200 + 20 * i, 210 + 20 * i, 7, name=name, graph_node=70 + i)
    return export


def test_an_export_of_nsys_is_a_capture_too(tmp_path):
    files = [each.write(tmp_path / name) for name, each in
             (("x.sqlite", nsys_replay()), ("capture.sqlite", nsys_capture()))]  # fmt: skip
    profile = fastprof.open(files[0], graph_capture=files[1])
    assert columns(profile, "op", "layer", "launch_ranges") == [
        (op.removeprefix("aten::"), ("made",), ("replay",)) for op in OPS
    ]
    assert columns(profile, "params")[1] == "M=4,N=32,K=16,na,"
    assert profile.graph_capture.rate == 1.0 and not profile.graph_capture.by_name


def test_the_capture_of_torch_profiler_serves_an_export_of_nsys(tmp_path):
    path = nsys_replay().write(tmp_path / "x.sqlite")
    lender = capture(KinetoFile(), names=KERNELS).write(tmp_path / "capture.json")
    profile = fastprof.open(path, graph_capture=lender)
    assert columns(profile, "op") == ["embedding", "mm", "silu", "mm"]


def test_graphs_that_were_traced_as_a_whole_are_said(tmp_path):
    export = Export().launch(10, 11, 1, 1, "cudaGraphLaunch_v10000").graph_trace(20, 70, corr=1)
    path = export.write(tmp_path / "x.sqlite")
    lender = capture(KinetoFile()).write(tmp_path / "capture.json")
    with pytest.raises(BadInputError, match="traced as a whole; record with --cuda-graph-trace"):
        fastprof.open(path, graph_capture=lender)


# The command and its errors.


def files(tmp_path) -> list[str]:
    trace, lender = replay(KinetoFile(), label="execute"), capture(KinetoFile())
    return [str(trace.write(tmp_path / "x.json")), str(lender.write(tmp_path / "capture.json"))]


def test_the_commands_take_the_option(tmp_path, capsys):
    trace, lender = files(tmp_path)
    assert main(["prof", trace, "--graph-capture", lender, "-c", "op,dir"]) == 0
    out, err = capsys.readouterr()
    assert out.split("\n")[1:3] == ["embedding fprop", "mm fprop"]
    assert f"4 of 4 kernels of 1 graph launch take their call from 1 capture in {lender}" in err
    assert main(["info", trace, "--graph-capture", lender, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["graph_capture"]
    assert told == {"files": [lender], "launches": 1, "kernels": 4, "replayed": 1, "matched": 4,
                    "captures": 1, "rate": 1.0, "by_name": True}  # fmt: skip
    assert main(["info", trace, "--graph-capture", lender]) == 0
    assert "graphs      4 of 4 kernels of 1 graph launch" in capsys.readouterr().out
    assert main(["info", trace, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["graph_capture"] is None
    dict_file = str(tmp_path / "x.dict")
    assert main(["parse", trace, "--graph-capture", lender, "-o", dict_file]) == 0
    capsys.readouterr()
    assert main(["prof", dict_file, "-c", "op,params,flops", "--csv"]) == 0
    assert '"mm","M=4,N=32,K=16,na,","4096"' in capsys.readouterr().out


def test_dict_lines_and_pipes_have_no_graphs(tmp_path, capsys):
    trace, lender = files(tmp_path)
    assert main(["parse", trace, "-o", str(tmp_path / "x.dict")]) == 0
    assert main(["prof", str(tmp_path / "x.dict"), "--graph-capture", lender]) == 1
    assert (
        "expected a trace that launches CUDA or HIP graphs, found dict" in capsys.readouterr().err
    )
    with pytest.raises(SystemExit) as usage:
        main(["prof", "--graph-capture", lender])
    assert usage.value.code == 2


def test_a_batch_takes_the_captures_and_reads_again_when_they_change(tmp_path):
    trace, lender = files(tmp_path)
    seen = []
    for changed in (False, False, True):
        if changed:
            capture(KinetoFile(), batch=64).write(tmp_path / "capture.json")
        batch = fastprof.batch([trace], graph_capture=[lender], store=tmp_path / "store", jobs=1,
                               progress=seen.append)  # fmt: skip
        assert batch.failures == []
        rows = {row["op"]: row["flops"] for row in batch.table("op").rows()}
        assert rows["mm"] == 2 * 2 * (64 if changed else 32) * 16 * 4
    assert [each.stored for each in seen] == [False, True, False]
    with pytest.raises(BadInputError, match="no such file"):
        fastprof.batch([trace], graph_capture=[tmp_path / "none.json"])


@pytest.mark.parametrize(
    "trace, lender, message",
    [
        (replay(KinetoFile()), replay(KinetoFile()), "expected the capture of a CUDA or HIP graph"),
        (
            capture(KinetoFile()),
            capture(KinetoFile()),
            "expected kernels launched by cudaGraphLaunch or",
        ),
    ],
)
def test_files_that_are_no_replay_or_no_capture_are_refused(opened, trace, lender, message):
    with pytest.raises(BadInputError, match=message):
        opened(trace, lender)


@pytest.mark.parametrize("at", [-(10**15), 10**15])
def test_a_capture_of_another_clock_is_put_behind_the_trace(opened, at):
    lender = capture(KinetoFile(), at=at)
    assert columns(opened(replay(KinetoFile()), lender), "op") == ["embedding", "mm", "silu", "mm"]


def test_times_that_do_not_fit_into_64_bits_are_refused(tmp_path):
    trace = nsys_replay().push_pop(2 * 10**18, 2 * 10**18 + 9, "late", tid=1)
    lender = nsys_capture().push_pop(9 * 10**18, 9 * 10**18 + 9, "later", tid=1)
    paths = trace.write(tmp_path / "x.sqlite"), lender.write(tmp_path / "capture.sqlite")
    with pytest.raises(
        BadInputError, match="expected times that fit into 64 bits of ns after those of"
    ):
        fastprof.open(paths[0], graph_capture=paths[1])


# The real pair: a server on an MI300X.


def test_the_real_replay_follows_its_capture():
    lender = real("kineto/sglang_graph_capture.json.gz")
    profile = fastprof.open(real("kineto/sglang_graph_decode.json.gz"), graph_capture=lender)
    told = profile.graph_capture
    assert (told.launches, told.kernels, told.matched, told.rate) == (1, 544, 544, 1.0)
    assert told.by_name and profile.check().startswith("555 kernel rows")
    known, total = profile.coverage.known, profile.coverage.total
    assert known["op"] > 0.99 * total and known["shapes"] > 0.99 * total
