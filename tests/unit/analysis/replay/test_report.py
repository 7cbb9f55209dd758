"""`whatif` on simulated runs: exactly the lengths of the steps of the changed program."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

import fastprof
from fastprof.analysis.replay.model import Model
from fastprof.errors import ReportError
from support import commands, replay_limits
from support.exports import Export
from unit.analysis.replay.simulated_run import CALL, Op, Program, changed, mean_ns, run

US = 1000
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SHORT = 2 * US  # host time of a host that runs ahead


def launch(ns: int, name: str = "gemm", host: int = SHORT, **others: Any) -> Op:
    return Op("launch", host, ns, name, **others)


def steps(*ops: Op, n: int = 4) -> Program:
    return [list(ops)] * n


GPU_BOUND = steps(*[launch(50 * US), launch(30 * US, "softmax")] * 6)
HOST_BOUND = steps(*[launch(5 * US, host=40 * US), launch(3 * US, "softmax", host=30 * US)] * 6)
TWO_STREAMS = steps(
    launch(60 * US),
    Op("wait", SHORT, stream=20, after=7, call=US),
    launch(45 * US, "side", stream=20),
    launch(25 * US, "softmax"),
    Op("wait", SHORT, stream=7, after=20, call=US),
    launch(35 * US),
    n=5,
)
SYNC = steps(launch(50 * US), launch(80 * US), Op("sync", 5 * US), launch(40 * US, host=30 * US))
COPY = steps(
    launch(50 * US), launch(80 * US), Op("copy", 5 * US, 20 * US), Op("copy", 5 * US, 10 * US),
    launch(40 * US, host=30 * US),
)  # fmt: skip
GRAPH = steps(Op("graph", 5 * US, kernels=(20 * US, 30 * US, 10 * US)), launch(40 * US), n=5)
LOADING = steps(Op("load", 10 * US, 300 * US), launch(50 * US), launch(60 * US), Op("sync", US))
THREADS = steps(
    *[launch(20 * US, host=20 * US)] * 4,
    Op("thread", ops=tuple([launch(30 * US, "wgrad", host=60 * US)] * 5)),
    *[launch(5 * US, "adam", host=70 * US)] * 2,
)
COLLECTIVE = [
    [
        launch(100 * US),
        Op("wait", SHORT, stream=20, after=7, call=US),
        launch(60 * US + late, ALLREDUCE, stream=20, late=late),
        Op("wait", SHORT, stream=7, after=20, call=US),
        launch(40 * US),
    ]
    for late in (0, 30 * US, 80 * US, 10 * US)
]
# A host that runs ahead, on two threads, until it copies from pageable memory.
UPLOAD = steps(
    Op("upload", SHORT, 40 * US),
    *[launch(500 * US)] * 8,
    Op("thread", ops=tuple([launch(900 * US, "wgrad")] * 10)),
    *[launch(200 * US, "adam")] * 3,
)
# The same, with the copies for the next step before the optimizer.
UPLOAD_LATE = [[*step[1:-3], step[0], *step[-3:]] for step in UPLOAD]
ALL = {
    "one stream": GPU_BOUND,
    "host-bound": HOST_BOUND,
    "two streams": TWO_STREAMS,
    "sync": SYNC,
    "blocking copy": COPY,
    "graph": GRAPH,
    "data loading": LOADING,
    "two threads": THREADS,
    "collective": COLLECTIVE,
    "pageable copy": UPLOAD,
    "late pageable copy": UPLOAD_LATE,
}


def opened(program: Program, tmp_path: Path) -> fastprof.Profile:
    return fastprof.open(run(program).write(tmp_path / "run.sqlite"), copies=True)


def predicted(program: Program, tmp_path: Path, **change: Any) -> tuple[int, list[dict[str, Any]]]:
    """The mean length of a step that the replay predicts for one change, and the steps."""
    facts = opened(program, tmp_path).whatif(**change).facts
    return facts["changes"][0]["wall_ns"], facts["steps"]


@pytest.mark.parametrize("program", ALL.values(), ids=ALL.keys())
def test_a_replay_without_changes_has_the_recorded_lengths(program, tmp_path):
    facts = opened(program, tmp_path).whatif().facts
    expected = run(program).lengths()
    assert [each["wall_ns"] for each in facts["steps"]] == expected
    assert [each["replayed_ns"] for each in facts["steps"]] == expected
    assert facts["unexplained_ns"] == 0


@pytest.mark.parametrize("factor", [0.0, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("program", ALL.values(), ids=ALL.keys())
def test_scaled_kernels(program, factor, tmp_path):
    result, of_steps = predicted(program, tmp_path, scale=f"name=gemm:{factor}")

    def scaled(op: Op) -> Op:
        if op.name != "gemm" or op.what in ("copy", "upload"):
            return op
        kernels = tuple(round(kernel * factor) for kernel in op.kernels)
        return replace(
            op, ns=op.ns if op.what == "load" else round(op.ns * factor), kernels=kernels
        )

    assert result == mean_ns(run(changed(program, scaled)), of_steps)


@pytest.mark.parametrize("is_warm", [True, False])
@pytest.mark.parametrize("program", ALL.values(), ids=ALL.keys())
def test_every_change_obeys_the_limits(program, is_warm, tmp_path):
    """Whether the first step counts, or begins before anything is recorded."""
    path = run(program, is_warm=is_warm).write(tmp_path / "run.sqlite")
    trace = fastprof.open(path, copies=True)
    assert trace.find_steps().is_counted[0] == is_warm
    replay_limits.check_changes(Model(trace))
    replay_limits.check_table(trace)


@pytest.mark.parametrize("change", ["name=*:0.5", "name=*:0", "name=gemm:2", "host:0.5", "host:2"])
@pytest.mark.parametrize("program", [HOST_BOUND, GPU_BOUND, TWO_STREAMS, SYNC, THREADS])
def test_steps_after_one_that_does_not_count(program, change, tmp_path):
    """They begin as soon as the changed work before them ends."""
    program = list(program) * 3
    factor = float(change.rpartition(":")[2])
    name = change.partition("=")[2].partition(":")[0]

    def scaled(op: Op) -> Op:
        if not name:
            return replace(op, host=round(op.host * factor), call=round(op.call * factor))
        return replace(op, ns=round(op.ns * factor)) if name in ("*", op.name) else op

    path = run(program, is_warm=False).write(tmp_path / "run.sqlite")
    facts = fastprof.open(path, copies=True).whatif(scale=change).facts
    expected = mean_ns(run(changed(program, scaled), is_warm=False), facts["steps"])
    assert facts["changes"][0]["wall_ns"] == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("program", [HOST_BOUND, GPU_BOUND, TWO_STREAMS, SYNC, THREADS])
@pytest.mark.parametrize("factor", [0.25, 0.5, 2.0])
def test_a_scaled_host(program, factor, tmp_path):
    result, of_steps = predicted(program, tmp_path, scale=f"host:{factor}")

    def scaled(op: Op) -> Op:
        return replace(op, host=round(op.host * factor), call=round(op.call * factor))

    assert result == mean_ns(run(changed(program, scaled)), of_steps)


@pytest.mark.parametrize("program", [HOST_BOUND, GPU_BOUND, THREADS])
def test_removed_kernels(program, tmp_path):
    name = "wgrad" if program is THREADS else "softmax"
    result, of_steps = predicted(program, tmp_path, remove=f"name={name}")
    assert result == mean_ns(
        run(changed(program, lambda op: None if op.name == name else op)), of_steps
    )


def test_a_step_without_kernels_takes_no_time(tmp_path):
    assert predicted(SYNC, tmp_path, remove="name=*")[0] == 0


def test_no_sync(tmp_path):
    result, of_steps = predicted(SYNC, tmp_path, no_sync=True)
    without = changed(SYNC, lambda op: replace(op, call=0) if op.what == "sync" else op)
    expected = mean_ns(run(without), of_steps)
    assert result == expected < mean_ns(run(SYNC), of_steps)


def test_data_that_is_ready(tmp_path):
    result, of_steps = predicted(LOADING, tmp_path, no_data_loading=True)
    without = changed(LOADING, lambda op: replace(op, ns=0) if op.what == "load" else op)
    assert result == mean_ns(run(without), of_steps)


def test_launches_as_a_graph(tmp_path):
    result, of_steps = predicted(HOST_BOUND, tmp_path, graph=True)
    as_graph = [
        [op if i == 0 else replace(op, host=0, call=0) for i, op in enumerate(step)]
        for step in HOST_BOUND
    ]
    assert result == mean_ns(run(as_graph), of_steps)


def test_fused_neighbours(tmp_path):
    pair = [launch(9 * US, "vectorized_elementwise_kernel", host=20 * US),
            launch(12 * US, "vectorized_elementwise_kernel", host=25 * US)]  # fmt: skip
    program = steps(launch(20 * US, host=15 * US), *pair, launch(30 * US, host=10 * US))
    result, of_steps = predicted(program, tmp_path, fuse="kind=elementwise")
    one = [program[0][0], replace(pair[0], ns=12 * US), program[0][3]]
    assert result == mean_ns(run([one] * len(program)), of_steps)


@pytest.mark.parametrize("factor", [0.0, 0.5])
def test_the_wait_for_other_ranks_does_not_shrink(factor, tmp_path):
    result, of_steps = predicted(COLLECTIVE, tmp_path, scale=f"kind=communication:{factor}")

    def scaled(op: Op) -> Op:
        is_comm = op.name == ALLREDUCE
        return replace(op, ns=round((op.ns - op.late) * factor) + op.late) if is_comm else op

    assert result == mean_ns(run(changed(COLLECTIVE, scaled)), of_steps)


@pytest.mark.parametrize("copy_us", [10, 60, 400])
def test_overlap_hides_copies_behind_other_work_at_most(copy_us, tmp_path):
    """110 us of kernels a step, after which the same stream uploads; the host runs ahead."""
    export, n, time = Export(), 5, 1_000_000
    for i in range(n):
        begin = 100_000 + 20_000 * i
        for j, ns in enumerate((60 * US, copy_us * US, 50 * US)):
            correlation = 3 * i + j + 1
            name = "cudaMemcpyAsync_v3020" if j == 1 else "cudaLaunchKernel_v7000"
            export.launch(begin + 5_000 * j, begin + 5_000 * j + 4_000, correlation, 1, name)
            if j == 1:
                export.copy(time, time + ns, correlation, 1, 1 << 20)
            else:
                export.kernel(time, time + ns, correlation)
            time += ns
        export.push_pop(begin - 2_000, begin + 16_000, f"step {i}", 1)
    trace = fastprof.open(export.gpu().write(tmp_path / "run.sqlite"), copies=True)
    change = trace.whatif(overlap="class=memcpy").facts["changes"][0]
    assert change["saved_ns"] == pytest.approx(min(copy_us, 110) * US, rel=0.25)
    assert change["saved_ns"] <= min(copy_us, 110) * US


def test_kept_replays_answer_as_new_ones_do(tmp_path):
    trace = opened(LOADING, tmp_path)
    part = trace.trim("0ms:0.5ms")
    questions = [
        {"scale": "name=gemm:0.5"}, {"no_data_loading": True}, {}, {"by": "kernel"},
        {"scale": "name=gemm:0.5"}, {"scale": "name=gemm:0.5", "steps": "none"},
    ]  # fmt: skip
    expected, of_part = (
        [str(one.whatif(**question)) for question in questions] for one in (trace, part)
    )
    trace.source.replays = part.source.replays = {}
    assert [str(trace.whatif(**question)) for question in questions] == expected
    assert trace.source.replays
    assert [str(part.whatif(**question)) for question in questions] == of_part
    assert [str(trace.whatif(**question)) for question in questions] == expected


def test_changes_are_replayed_together(tmp_path):
    facts = opened(SYNC, tmp_path).whatif(scale="name=gemm:0.5", no_sync=True).facts
    both = changed(
        SYNC, lambda op: replace(op, call=0) if op.what == "sync" else replace(op, ns=op.ns // 2)
    )
    names = [change["name"] for change in facts["changes"]]
    assert names == ["scale name=gemm:0.5", "no-sync", "all together"]
    assert facts["changes"][-1]["wall_ns"] == mean_ns(run(both), facts["steps"])


BINDS: list[tuple[Program, str]] = [
    (GPU_BOUND, "GPU"), (HOST_BOUND, "host"), (LOADING, "data loading"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "expected"), BINDS)
def test_what_binds(program, expected, tmp_path):
    table = opened(program, tmp_path).whatif(scale="name=gemm:1")
    assert list(table["binds"]) == [expected, expected]


def busy_ns(trace: fastprof.Profile) -> int:
    """During which the only GPU works; its work does not overlap."""
    return sum(int(trace.column("sil").at(i)) for i in range(len(trace)))


def on_path(table: fastprof.Table) -> dict[str, int]:
    return {row["value"]: row["path_ns"] for row in table.rows() if row["key"] == "resource"}


@pytest.mark.parametrize("program", [UPLOAD, UPLOAD_LATE])
def test_a_gpu_that_is_never_idle_binds_the_step(program, tmp_path):
    """Copies from pageable memory that wait behind all queued work are no time of the host."""
    trace = opened(program, tmp_path)
    table = trace.whatif()
    result, lengths = on_path(table), run(program).lengths()
    assert busy_ns(trace) > 0.98 * sum(lengths)
    assert result["GPU"] + result["copies"] > 0.98 * sum(lengths) / len(lengths)
    assert result.get("host", 0) < 0.01 * sum(lengths) / len(lengths)
    gpu = next(row for row in table.rows() if row["value"] == "GPU")
    assert gpu["saved_50_ns"] == pytest.approx(gpu["gpu_ns"] / 2, rel=0.02)


@pytest.mark.parametrize("name", ["cudaEventQuery_v3020", "cudaHostUnregister_v4000"])
def test_a_call_that_ends_as_all_work_does_is_a_wait(name, tmp_path):
    """Whatever its name."""
    result = run(GPU_BOUND)
    end = result.free[7]
    result.correlation += 1
    result.export.launch(result.time[1] + SHORT, end + US, result.correlation, 1, name)
    result.time[1] = end + US
    result.step(len(GPU_BOUND), GPU_BOUND[0])
    trace = fastprof.open(result.write(tmp_path / "run.sqlite"), copies=True)
    resources = on_path(trace.whatif())
    assert resources["GPU"] > 0.9 * sum(result.lengths()) / len(result.lengths())


def test_launches_into_a_full_queue_wait(tmp_path):
    """The host is 600 launches ahead: it waits in launches, and the GPU binds."""
    program = steps(*[launch(30 * US, host=US)] * 1000, n=2)
    recorded = run(program, room=600)
    trace = fastprof.open(recorded.write(tmp_path / "run.sqlite"), copies=True)
    table = trace.whatif(scale=["name=gemm:0.5"])
    assert table.facts["resources"]["GPU"] > 0.95 * sum(recorded.lengths()) / 2
    half = changed(program, lambda op: replace(op, ns=op.ns // 2))
    expected = mean_ns(run(half, room=600), table.facts["steps"])
    assert table.facts["changes"][0]["wall_ns"] == pytest.approx(expected, rel=0.02)


def test_the_host_binds_once_the_gpu_is_fast(tmp_path):
    table = opened(GPU_BOUND, tmp_path).whatif(scale=["name=*:0"])
    assert list(table["binds"]) == ["GPU", "host"]


def test_the_critical_path_adds_up_to_the_step(tmp_path):
    for i, program in enumerate((GPU_BOUND, HOST_BOUND, TWO_STREAMS, SYNC, THREADS, LOADING)):
        folder = tmp_path / str(i)
        folder.mkdir()
        table = opened(program, folder).whatif(by="name")
        lengths = run(program).lengths()
        counted = [ns for ns, each in zip(lengths, table.facts["steps"], strict=True)
                   if each["is_counted"]]  # fmt: skip
        assert abs(int(table["path_ns"].sum()) - sum(counted) / len(counted)) <= len(table["name"])


def test_slack(tmp_path):
    """The kernel of the other stream ends 15 us before the one that waits for both."""
    program = steps(
        launch(60 * US),
        Op("wait", SHORT, stream=20, after=7, call=US),
        launch(20 * US, "side", stream=20),
        launch(40 * US, "softmax"),
        Op("wait", SHORT, stream=7, after=20, call=US),
        launch(35 * US, "last"),
    )
    rows = {row["name"]: row for row in opened(program, tmp_path).whatif(by="name").rows()}
    assert rows["softmax"]["slack_ns"] == rows["gemm"]["slack_ns"] == 0
    # softmax: 1 us after gemm, for 40 us, last 1 us later; side: 2 us, 20 us, last 2 us later
    assert rows["side"]["slack_ns"] == (1 + 40 + 1 - 2 - 20 - 2) * US


def test_virtual_speed_ups(tmp_path):
    table = opened(GPU_BOUND, tmp_path).whatif()
    rows = {(row["key"], row["value"]): row for row in table.rows()}
    base = mean(run(GPU_BOUND).lengths())
    gpu = rows["resource", "GPU"]
    assert gpu["gpu_ns"] == 6 * 80 * US
    for percent, factor in ((10, 0.9), (50, 0.5), (100, 0.0)):
        faster = changed(GPU_BOUND, lambda op, f=factor: replace(op, ns=round(op.ns * f)))
        wall = mean(run(faster).lengths())
        assert abs(gpu[f"saved_{percent}_ns"] - (base - wall)) <= 1


def test_call_time_is_the_hosts(tmp_path):
    """A call that takes long before it launches: the time moves with the host."""
    slow = steps(launch(10 * US, host=20 * US), launch(10 * US, host=20 * US, call=300 * US))
    assert run(slow).lengths()[1] > 300 * US + CALL
    result, of_steps = predicted(slow, tmp_path, scale="host:0.5")
    half = changed(slow, lambda op: replace(op, host=op.host // 2, call=op.call // 2))
    assert result == mean_ns(run(half), of_steps)


SGEMM = "ampere_sgemm_128x64_tn"


def test_another_type_is_faster_by_the_ratio_of_the_peaks(tmp_path):
    """A100: 19.5 TFLOP/s in fp32, 312 in bf16."""
    program = steps(*[launch(160 * US, SGEMM), launch(30 * US, "softmax")] * 3)
    result, of_steps = predicted(program, tmp_path, dtype="bf16")
    faster = changed(program, lambda op: replace(op, ns=10 * US) if op.name == SGEMM else op)
    assert result == mean_ns(run(faster), of_steps)


def test_products_at_the_roofline(tmp_path):
    """2 x 1024^3 FLOPs at 19.5 TFLOP/s take 110.1 us."""
    label = "mm, op_id = 1, sizes = [[1024, 1024], [1024, 1024]]"
    program = steps(launch(300 * US, SGEMM, label=label), launch(30 * US, "softmax"))
    result, of_steps = predicted(program, tmp_path, ideal="op=mm")
    ideal = round(2 * 1024**3 / 19.5e12 * 1e9)
    faster = changed(program, lambda op: replace(op, ns=ideal) if op.label else op)
    assert result == mean_ns(run(faster), of_steps)


def test_kernels_above_the_roofline_keep_their_time(tmp_path):
    label = "mm, op_id = 1, sizes = [[1024, 1024], [1024, 1024]]"
    program = steps(launch(100 * US, SGEMM, label=label), launch(30 * US, "softmax"))
    result, of_steps = predicted(program, tmp_path, ideal="op=mm")
    assert result == mean_ns(run(program), of_steps)


def test_padded_products_use_tensor_cores(tmp_path):
    label = "mm, op_id = 1, sizes = [[100, 33], [33, 64]]"
    program = steps(launch(100 * US, "ampere_h884gemm_no_tc", label=label), launch(30 * US, "x"))
    hgemm = changed(
        program, lambda op: replace(op, name="volta_hgemm_64x64_nn") if op.label else op
    )
    trace = opened(hgemm, tmp_path)
    peaks = trace.devices[0]
    share = peaks.peak("fp16", False) / peaks.peak("fp16", True)
    facts = trace.whatif(pad=8).facts
    ns = round(100 * US * (104 * 40 * 64) / (100 * 33 * 64) * share)
    faster = changed(hgemm, lambda op: replace(op, ns=ns) if op.label else op)
    assert facts["changes"][0]["wall_ns"] == mean_ns(run(faster), facts["steps"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "opp=mm:0.5"}, "unknown key 'opp'; did you mean op"),
        ({"scale": "name=gem:0.5"}, "unknown name 'gem'; did you mean gemm"),
        ({"scale": "name=gemm"}, "expected KEY=PATTERN:FACTOR"),
        ({"scale": "name=gemm:-1"}, "factor from 0 to 1000"),
        ({"remove": "op=mm"}, "op is not recorded in"),
        ({"ideal": "name=softmax"}, "no cost or peak of these kernels is known"),
        ({"dtype": "fp8"}, "no peak of fp8 known for GPU 0"),
        ({"by": "opp"}, "unknown key 'opp'"),
    ],
)
def test_what_cannot_be_answered(options, message, tmp_path):
    with pytest.raises(ReportError, match=re.escape(message)):
        opened(GPU_BOUND, tmp_path).whatif(**options)


def test_the_command_rejects_a_malformed_selector(usage_error):
    message = usage_error("whatif", "net.sqlite", "--scale", "op")
    assert "expected KEY=PATTERN:FACTOR such as op=linear:0.5" in message


def test_kernels_before_their_launch_lose_that_edge(tmp_path):
    result = run(GPU_BOUND)
    result.export.launch(5_000_000, 5_001_000, 999, 1)
    result.export.kernel(4_900_000, 4_950_000, 999, name="early")
    table = fastprof.open(result.write(tmp_path / "run.sqlite"), copies=True).whatif()
    assert table.facts["cut"] == 1
    assert any(note.startswith("1 kernels start before their launch") for note in table.notes)
    assert all(each["wall_ns"] == each["replayed_ns"] for each in table.facts["steps"])


def test_without_api_calls_kernels_can_change(tmp_path):
    export = Export()
    for i in range(4):
        export.kernel(10_000 + 60_000 * i, 60_000 + 60_000 * i, None)
    trace = fastprof.open(export.gpu().write(tmp_path / "run.sqlite"), copies=True)
    table = trace.whatif(scale="name=sgemm:0.5")
    assert any(note.startswith("no API calls in the file") for note in table.notes)
    assert table.facts["changes"][0]["wall_ns"] == 230_000 - 4 * 25_000


def test_json_has_steps_changes_and_the_critical_path(tmp_path):
    path = run(SYNC).write(tmp_path / "run.sqlite")
    done = commands.run("whatif", str(path), "--no-sync", "--json")
    result = json.loads(done.stdout)
    assert result["changes"][0].keys() >= {"name", "wall_ns", "saved_ns"}
    assert result["steps"][0].keys() >= {"wall_ns", "replayed_ns"}
    on_path = result["critical_path"]
    assert on_path[0].keys() == {"resource", "op", "layer", "line", "ns"}
    counted = [each["wall_ns"] for each in result["steps"] if each["is_counted"]]
    assert abs(sum(each["ns"] for each in on_path) - sum(counted) / len(counted)) <= len(on_path)
    assert abs(sum(result["resources"].values()) - sum(counted) / len(counted)) <= len(on_path)
    assert [row["name"] for row in result["rows"]] == ["recorded", "no-sync"]
