"""Simulated runs: times obey streams, launches and groups; faults cost what they should."""

import numpy as np
import pytest
from bench.ranks import faults, programs
from bench.ranks.communications import instances
from bench.ranks.program import Collective, Communication, Compute, Program, Send
from bench.ranks.simulate import COMMUNICATION, LATENCY, LAUNCHED, NEVER, Run, simulate

RUNS = {
    "ddp": programs.ddp(4, blocks=2, buffers=True),
    "ddp on the compute stream": programs.ddp(4, blocks=2, own_stream=False),
    "ddp without synchronisation": programs.ddp(4, blocks=2, synchronise=False),
    "fsdp": programs.fsdp(4, blocks=3),
    "tp_dp": programs.tp_dp(8, tensor=4, blocks=2),
    "tp_dp on the compute stream": programs.tp_dp(8, tensor=4, blocks=2, own_stream=False),
    "experts": programs.experts(8, size=2, blocks=2),
    "pipeline": programs.pipeline(6, stages=3, batches=5),
    "pipeline of two": programs.pipeline(2, stages=2, batches=1),
}


@pytest.fixture(params=RUNS.values(), ids=RUNS)
def program(request: pytest.FixtureRequest) -> Program:
    return request.param


def test_the_same_seed_gives_the_same_run(program: Program) -> None:
    first, again, other = (simulate(program, 3, seed) for seed in (1, 1, 2))
    assert (first.gpu_end == again.gpu_end).all()
    assert (first.gpu_end != other.gpu_end).any()


def of_kind(run: Run, kind: object) -> np.ndarray:
    return np.array([isinstance(op, kind) for op in run.program.step])[run.op]


def test_a_thread_and_a_stream_do_one_thing_at_a_time(program: Program) -> None:
    run = simulate(program, 3)
    for rank in range(program.n_ranks):
        host = run.begin[:, rank] != NEVER
        assert (run.begin[host, rank][1:] >= run.end[host, rank][:-1]).all()
        compute = of_kind(run, Compute) & host
        begin, end = run.gpu_begin[compute, rank], run.gpu_end[compute, rank]
        assert (begin[1:] >= end[:-1]).all() and (end > begin).all()


def test_work_starts_after_its_launch(program: Program) -> None:
    run = simulate(program, 3)
    there = run.gpu_begin != NEVER
    launch = run.begin + ((run.end - run.begin) * LAUNCHED).astype(np.int64)
    assert (run.gpu_begin >= launch + LATENCY)[there].all()
    assert there.any()


def test_work_waits_for_all_members(program: Program) -> None:
    run = simulate(program, 3)
    result = instances(run)
    per_step = sum(
        len(op.ranks if not isinstance(op, Collective) else program.groups[op.groups].ranks)
        for op in program.step
        if isinstance(op, Communication) and not isinstance(op, Send)
    )
    assert len(result) == 3 * per_step
    for each in result:
        assert max(each.arrival) + each.transfer == min(each.end)
        assert each.transfer > 0 and max(each.end) - min(each.end) < 2_000
        assert each.arrival[each.ranks.index(each.last)] == max(each.arrival)
        assert [a + w for a, w in zip(each.arrival, each.wait, strict=True)] == (
            [max(each.arrival)] * len(each.ranks)
        )


def test_numbers_of_collectives_count_up_in_each_group() -> None:
    program = programs.tp_dp(8, tensor=4, blocks=2)
    result = instances(simulate(program, 3), first_step=0)
    of_group: dict[str, list[int]] = {}
    for call in result:
        assert len(set(call.seq)) == 1
        of_group.setdefault(call.group, []).append(call.seq[0])
    assert set(of_group) == {"0", "1", "2", "3", "4", "5", "6"}
    for numbers in of_group.values():
        assert numbers == list(range(1, len(numbers) + 1))


def test_overlapped_work_does_not_hold_the_compute_stream() -> None:
    overlapped = simulate(programs.ddp(4), 3).mean_step
    on_compute = simulate(programs.ddp(4, own_stream=False), 3).mean_step
    assert on_compute - overlapped == pytest.approx(3 * 138e3, rel=0.1)


def saves(program: Program, fault: faults.Fault, *others: faults.AnyFault) -> float:
    with_fault = simulate(program, 4, 1, [fault, *others])
    return with_fault.mean_step - simulate(program, 4, 1, others).mean_step


DDP = programs.ddp(4)
KERNELS = sum(op.ns for op in DDP.step if isinstance(op, Compute))
OPTIMIZER = sum(op.ns for op in DDP.step if isinstance(op, Compute) and not op.layer)
LINEAR = sum(op.ns for op in DDP.step if isinstance(op, Compute) and op.op == "aten::addmm")


@pytest.mark.parametrize(
    "fault, expected",
    [
        (faults.Data(rank=2, ns=3_000_000), 3e6),
        (faults.Data(rank=2, ns=3_000_000, steps=(1,)), 0.75e6),
        (faults.Gpu(rank=1, factor=1.3), 0.3 * KERNELS),
        (faults.Gpu(rank=1, factor=1.3, begin=2), 0.15 * KERNELS),
        (faults.Rows(rank=1, factor=2), LINEAR),
        (faults.Rows(rank=1, factor=2, layer="*/Block_1/*"), LINEAR / 4),
        (faults.Rows(rank=1, factor=1.5, op="*"), 0.5 * (KERNELS - OPTIMIZER)),
        (faults.Calls(rank=1, calls=1), LINEAR),
        (faults.Calls(rank=1, calls=1, steps=(0,)), LINEAR / 4),
        (faults.Start(rank=3, ns=8_000_000), 2e6),
    ],
    ids=str,
)
def test_a_fault_costs_what_it_adds(fault: faults.Fault, expected: float) -> None:
    assert saves(DDP, fault) == pytest.approx(expected, rel=0.06)
    run = simulate(DDP, 4, 1, [fault])
    assert run.injected.sum() / 4 == pytest.approx(expected, rel=0.03)


def test_python_costs_what_the_gpu_does_not_hide() -> None:
    assert saves(DDP, faults.Host(rank=0, ns=20_000_000)) > 10e6
    assert abs(saves(DDP, faults.Host(rank=0, ns=1_000))) < 2_000
    assert saves(DDP, faults.Host(rank=0, ns=0, factor=40)) > 10e6


def test_a_fault_behind_a_larger_one_costs_nothing() -> None:
    large = faults.Data(rank=0, ns=9_000_000)
    assert abs(saves(DDP, faults.Data(rank=1, ns=2_000_000), large)) < 20_000
    assert saves(DDP, large, faults.Data(rank=1, ns=2_000_000)) == pytest.approx(7e6, rel=0.02)


def test_a_fault_changes_nothing_before_it() -> None:
    late = simulate(DDP, 4, 1, [faults.Gpu(rank=1, begin=2), faults.Calls(rank=2, steps=(3,))])
    plain = simulate(DDP, 4, 1)
    assert (late.run_ends[:2] == plain.run_ends[:2]).all()
    assert (late.run_ends[2:] > plain.run_ends[2:]).all()


def test_the_last_to_arrive_is_the_rank_with_the_fault() -> None:
    result = instances(simulate(programs.fsdp(8), 3, 1, [faults.Data(rank=5)]))
    first = [call for call in result if call.seq[0] % 12 == 1]
    assert len(first) == 3 and {each.last for each in first} == {5}
    assert all(min(w for w in each.wait if w) > 4_000_000 for each in first)


def test_a_pipeline_passes_micro_batches_on() -> None:
    program = programs.pipeline(4, stages=4, batches=6)
    result = [
        instance for instance in instances(simulate(program, 2)) if instance.kind == "send_recv"
    ]
    assert len(result) == 2 * 2 * 3 * 6
    assert {tuple(each.ranks) for each in result} == {
        (0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0),
    }  # fmt: skip


def test_time_between_communications_is_what_the_compute_stream_did() -> None:
    program = programs.tp_dp(8, tensor=4, blocks=2)
    given = [faults.Data(rank=3, ns=4_000_000), faults.Start(rank=1, ns=9_000_000)]
    run = simulate(program, 3, 1, given, between=True)
    assert run.between is not None
    label = run.labels.index("aten::addmm")
    kernels = of_kind(run, Compute) & np.array(
        [isinstance(op, Compute) and op.op == "aten::addmm" for op in run.program.step]
    )[run.op]  # fmt: skip
    expected = (run.gpu_end - run.gpu_begin)[kernels].sum(axis=0)
    assert (run.between[:, :, label].sum(axis=0) == expected).all()
    spent = run.between.sum(axis=0)
    assert 3 * 4e6 < spent[3, run.labels.index("data loading")] < 3 * 4.5e6
    assert 8.5e6 < spent[1, run.labels.index("start")] < 9.5e6
    assert (spent[:, run.labels.index(COMMUNICATION)] > 0).all()


def test_only_communications_are_kept_on_request() -> None:
    program = programs.tp_dp(8, tensor=4, blocks=2)
    all_rows, few = simulate(program, 3), simulate(program, 3, only_communication=True)
    kept = of_kind(all_rows, Communication)
    assert 0 < len(few.op) < len(all_rows.op)
    for name in ("op", "step", "begin", "gpu_begin", "gpu_end"):
        assert (getattr(all_rows, name)[kept] == getattr(few, name)).all()
    assert (all_rows.run_ends == few.run_ends).all()


def test_many_ranks_take_little_time() -> None:
    program = programs.tp_dp(1024, tensor=8, blocks=4)
    run = simulate(program, 2, faults=[faults.Data(rank=700)], only_communication=True)
    assert run.gpu_end.shape == (2 * 21, 1024)
    assert [groups.ranks.shape for groups in program.groups.values()] == [
        (1, 1024), (128, 8), (8, 128),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text, expected",
    [
        ("data:3", faults.Data(rank=3)),
        ("data:3:ns=2e6,steps=1-2", faults.Data(rank=3, ns=2_000_000, steps=(1, 2))),
        ("gpu:0:factor=1.5,begin=2", faults.Gpu(rank=0, factor=1.5, begin=2)),
        ("rows:1:op=aten::mm", faults.Rows(rank=1, op="aten::mm")),
        ("clock:1:offset=-2e9,ppm=30", faults.Clock(rank=1, offset=-2_000_000_000, ppm=30.0)),
        ("window:1:first_instances=3", faults.Window(rank=1, first_instances=3)),
        ("missing:7", faults.Missing(rank=7)),
    ],
)
def test_faults_are_written_as_text(text: str, expected: faults.AnyFault) -> None:
    assert faults.parse(text) == expected


@pytest.mark.parametrize("text", ["", "dat:1", "data:x", "data:1:size=3", "data:1:ns=x"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        faults.parse(text)


def test_a_fault_of_no_rank_is_refused() -> None:
    with pytest.raises(ValueError, match="expected ranks below 4"):
        simulate(DDP, faults=[faults.Data(rank=4)])
