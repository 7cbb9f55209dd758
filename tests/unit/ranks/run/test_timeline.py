"""A trace to records: calls, their signatures, and the chain of all other work."""

from pathlib import Path

import numpy as np
import pytest
from bench.ranks import faults, programs, truth

import fastprof
from fastprof.ranks.run.record import ARRIVED, BOUNDARY, COMPUTE, COPY, KINDS_OF_LABELS, WAITED
from fastprof.ranks.run.timeline import records_of
from fastprof.ranks.work import Options, work
from support.exports import Export
from support.kineto_files import KinetoFile
from support.rank_files import ALL_REDUCE

FORMS = ["kineto", "nsys"]
PROGRAMS = {"ddp": 2, "fsdp": 2, "tp_dp": 4, "experts": 4, "pipeline": 4}


def ranks_of(path):
    """The ranks in a file."""
    return work(str(path), Options(ranks=True)).ranks


def written(trace, folder: Path):
    return ranks_of(trace.write(folder / "trace.json"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A function from a program and a form to the records of its files and its answers."""

    def made(name, form):
        folder = tmp_path_factory.mktemp(name)
        sizes = {"tensor": 2} if name == "tp_dp" else {}
        blocks = 4 if name == "pipeline" else 2
        program = programs.PROGRAMS[name](PROGRAMS[name], blocks=blocks, **sizes)
        answer = truth.write(
            folder, program, steps=3, faults=[faults.Data(rank=1, steps=(1,))], form=form
        )
        paths = sorted(path for path in folder.iterdir() if path.name.startswith("rank"))
        return [record for path in paths for record in ranks_of(path)], answer

    return made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_pieces_of_a_chain_are_its_time(files, program, form):
    records, answer = files(program, form)
    for record in records:
        chain, calls = record.chain, record.calls
        length = np.diff(np.concatenate([[chain.begin], chain.time]))
        piece = np.repeat(np.arange(len(chain)), np.diff(chain.offsets))
        work_ = np.bincount(piece, chain.ns, len(chain)).astype(np.int64)
        assert (work_ + chain.blocked).tolist() == length.tolist()
        assert (chain.ns > 0).all() and (chain.blocked >= 0).all()
        # Each call arrives once, in time, and is waited for at most once, at its end.
        arrived, waited = (np.flatnonzero(chain.kind == kind) for kind in (ARRIVED, WAITED))
        assert sorted(chain.call[arrived].tolist()) == list(range(len(calls)))
        assert (chain.time[arrived] <= calls.start[chain.call[arrived]]).all()
        assert chain.time[waited].tolist() == calls.end[chain.call[waited]].tolist()
        assert len(set(chain.call[waited].tolist())) == len(waited)
        assert (chain.blocked[chain.kind != WAITED] == 0).all()
        assert (chain.call[chain.kind == BOUNDARY] == -1).all()
        assert (np.diff(calls.start) >= 0).all() and (calls.end > calls.start).all()
    expected = sum(len(instance.ranks) for instance in answer.instances)
    assert sum(len(record.calls) for record in records) == expected


@pytest.mark.parametrize("form", FORMS)
def test_compute_is_that_of_the_run(files, form):
    records, answer = files("ddp", form)
    for rank, record in enumerate(records):
        kinds = np.array([label.kind for label in record.labels])
        compute = record.chain.ns[kinds[record.chain.label] == COMPUTE].sum()
        real = sum(step.compute for step in answer.steps if step.rank == rank)
        assert compute == pytest.approx(real, rel=0.001)


def test_a_pause_of_the_loader_is_its_label(files):
    records, _ = files("ddp", "kineto")
    loading = KINDS_OF_LABELS.index("data loading")
    late, other = (
        sum(
            int(record.chain.ns[record.chain.label == i].sum())
            for i, label in enumerate(record.labels)
            if label.kind == loading
        )
        for record in (records[1], records[0])
    )
    assert late - other == pytest.approx(5_000_000, rel=0.1)


def collective(trace, start, end, corr, **args):
    """An all-reduce of 100 floats, launched at `start - 100`."""
    told = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 100,
            "Out msg nelems": 100, "Group size": 2, "Process Group Name": "0",
            "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]"}  # fmt: skip
    trace.op(start - 200, start - 10, "record_param_comms", dims=[[[100]]], types=["TensorList"],
             **told, **args)  # fmt: skip
    trace.launch(start - 100, start - 90, corr=corr)
    return trace.kernel(start, end, corr=corr, name=ALL_REDUCE, stream=20, **told, **args)


def test_signatures_are_those_of_the_file(tmp_path):
    trace = KinetoFile(distributedInfo={"backend": "nccl", "rank": 1, "world_size": 2})
    for i in range(3):
        collective(trace, 10_000 * (i + 1), 10_000 * (i + 1) + 5_000, i + 1, Seq=40 + i)
    (record,) = written(trace, tmp_path)
    (signature,) = record.signatures
    assert (signature.kind, signature.size, signature.n_ranks) == ("all_reduce", 400, 2)
    assert (signature.group, signature.members) == ("0 default_pg", (0, 1))
    assert record.calls.seq.tolist() == [40, 41, 42]
    assert (record.rank, record.world_size, record.device) == (1, 2, 0)
    assert record.calls.end.tolist() == [record.calls.start[0] + 5_000 + 10_000 * i
                                         for i in range(3)]  # fmt: skip


def test_kernels_during_others_count_once(tmp_path):
    trace = KinetoFile()
    for corr, (start, end, stream) in enumerate(
        [(1_000, 5_000, 7), (2_000, 4_000, 8), (3_000, 9_000, 8)], 1
    ):
        trace.launch(100 * corr, 100 * corr + 50, corr=corr)
        trace.kernel(start, end, corr=corr, stream=stream)
    (record,) = written(trace, tmp_path)
    assert record.chain.ns.sum() == 8_000
    assert record.chain.count.sum() == 2  # of the one inside another, nothing is left


def test_copies_have_labels_of_their_own(tmp_path):
    trace = KinetoFile()
    trace.launch(100, 150, corr=1).kernel(1_000, 2_000, corr=1)
    trace.launch(200, 250, corr=2, name="cudaMemcpyAsync")
    trace.copy(2_000, 5_000, 2, "Memcpy HtoD (Pinned -> Device)", 4_000)
    (record,) = written(trace, tmp_path)
    sums = {label.kind: 0 for label in record.labels}
    for label, ns in zip(record.chain.label.tolist(), record.chain.ns.tolist(), strict=True):
        sums[record.labels[label].kind] += ns
    assert (sums[COMPUTE], sums[COPY]) == (1_000, 3_000)


def export(*lanes):
    """(pid, device, kernels): a file with the work of several processes."""
    out, corr = Export(), 0
    for pid, device, names in lanes:
        for i, name in enumerate(names):
            corr += 1
            out.launch(10 * corr, 10 * corr + 5, corr=corr, tid=1, pid=pid)
            out.kernel(
                1000 * i + 5_000, 1000 * i + 5_900, corr=corr, name=name, pid=pid, device=device
            )
    return out


@pytest.mark.parametrize(
    ("lanes", "expected"),
    [
        ([(1, 0, ["a", ALL_REDUCE]), (2, 1, ["a", ALL_REDUCE])], [(1, 0), (2, 1)]),
        # A process is a rank for each GPU on which it communicates.
        ([(1, 0, ["a", ALL_REDUCE]), (1, 1, ["a", ALL_REDUCE])], [(1, 0), (1, 1)]),
        ([(1, 0, ["a", ALL_REDUCE]), (1, 1, ["a", "b", "c"])], [(1, 0)]),
        # Without communication, one rank: on the GPU with most of its work.
        ([(1, 0, ["a"]), (1, 1, ["a", "b", "c"])], [(1, 1)]),
        ([(1, 0, ["a", ALL_REDUCE]), (2, 0, ["a", "b"])], [(1, 0), (2, 0)]),
    ],
)
def test_ranks_are_processes_and_the_gpus_they_communicate_on(lanes, expected, tmp_path):
    records = ranks_of(export(*lanes).write(tmp_path / "both.sqlite"))
    assert [(record.pid, record.device) for record in records] == expected
    assert [(record.place, record.n_places) for record in records] == [
        (i, len(expected)) for i in range(len(expected))
    ]


def test_the_start_of_a_step_is_an_event(tmp_path):
    trace = KinetoFile()
    for i in range(3):
        trace.annotation(10_000 * i, 10_000 * i + 9_000, f"ProfilerStep#{5 + i}")
        trace.launch(10_000 * i + 100, 10_000 * i + 150, corr=i + 1)
        trace.kernel(10_000 * i + 1_000, 10_000 * i + 8_000, corr=i + 1)
    (record,) = written(trace, tmp_path)
    steps = record.steps
    assert (steps.source, steps.number.tolist()) == ("ProfilerStep", [5, 6, 7])
    boundaries = record.chain.time[record.chain.kind == BOUNDARY]
    inside = steps.start[steps.start > record.chain.begin]
    assert set(inside.tolist()) <= set(boundaries.tolist())
    assert steps.end[-1] in boundaries


def test_a_profile_without_kernels_has_no_rank(tmp_path):
    path = KinetoFile().op(0, 100, "aten::mm").write(tmp_path / "empty.json")
    result = work(str(path), Options(ranks=True))
    assert getattr(result, "ranks", []) == []


def test_warnings_are_of_the_first_rank_of_a_file(tmp_path):
    path = export((1, 0, ["a", ALL_REDUCE]), (2, 1, ["a", ALL_REDUCE])).write(tmp_path / "a.sqlite")
    profile = fastprof.open(path)
    profile.warnings.append("something")
    one, other = records_of(profile, ranks_of(path)[0].source)
    assert (one.warnings[-1], other.warnings) == ("something", [])
