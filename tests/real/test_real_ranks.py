"""fastprof.open_ranks on real ranks of one run, against their JSON and SQL."""

import gzip
import json
from typing import NamedTuple

import numpy as np
import pytest

from fastprof.api.ranks import Ranks
from fastprof.ranks.work import Options, work
from support.real_data import open_read_only, real

TWO_GPUS = "nsys/emit_nvtx_2gpu_nsys2026.sqlite"


def opened(paths):
    """The ranks of files, read in this process."""
    return Ranks([work(str(path), Options(ranks=True)) for path in paths])


class Kernels(NamedTuple):
    """Of each rank: start and end of the kernels of NCCL, [ranks, calls], ns."""

    start: np.ndarray
    end: np.ndarray

    def last(self):
        return self.start.max(axis=0)


def of_json(paths):
    """The kernels of NCCL in files of torch.profiler."""
    spans = []
    for path in paths:
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        spans.append(
            sorted(
                (round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000))
                for e in events
                if e.get("cat") == "kernel" and e["name"].startswith("nccl")
            )
        )
    return Kernels(*np.array(spans, np.int64).transpose(2, 0, 1))


def assert_waits(run, kernels, slack=1):
    """Arrivals, waits and the last rank of each collective are those of the kernels.

    slack : ns, the rounding of the file's times
    """
    n_ranks, n_calls = kernels.start.shape
    waits, calls = run.waits, run.instances.calls
    assert len(waits.instances) == n_calls and waits.is_shared.all()
    assert run.unmatched().n_rows == 0
    result = waits.wait.reshape(n_ranks, n_calls)
    assert np.abs(result - (kernels.last() - kernels.start)).max() <= slack
    in_order = waits.last[waits.instances.of_call[: calls.bounds[1]]]
    assert in_order.tolist() == kernels.start.argmax(axis=0).tolist()
    transfer = np.rint(np.median(kernels.end - kernels.last(), axis=0))
    own = waits.transfer[waits.instances.of_call[: calls.bounds[1]]]
    assert np.abs(own - transfer).max() <= slack


def assert_parts_add_up(run):
    for times in run.step_times:
        assert times.parts.sum(axis=1).tolist() == (times.end - times.start).tolist()


def assert_replayed(run):
    for replayed, times in zip(run.replay.recorded, run.step_times, strict=True):
        assert np.abs(replayed / (times.end - times.start) - 1).max() < 0.01


# Four of eight ranks of one step.


@pytest.fixture(scope="module")
def dlrm_files():
    return [real(f"kineto/dlrm_rank{rank}.json.gz") for rank in range(4)]


@pytest.fixture(scope="module")
def dlrm(dlrm_files):
    return opened(dlrm_files)


def test_dlrm_has_the_ranks_that_the_files_say(dlrm):
    assert (dlrm.rule, dlrm.numbers, dlrm.missing) == ("recorded", [0, 1, 2, 3], [4, 5, 6, 7])
    assert "missing: ranks 4, 5, 6, 7; waits for them are unknown" in dlrm.lines()
    assert dlrm.waits.missing.tolist() == [4] * 8


def test_dlrm_clocks_agree_within_the_microseconds_of_the_file(dlrm):
    assert dlrm.clocks.offset.tolist() == [0] * 4
    assert dlrm.clocks.residual.max() <= 1_000


def test_dlrm_waits_are_those_of_the_kernels(dlrm, dlrm_files):
    assert_waits(dlrm, of_json(dlrm_files))


def test_dlrm_rank_2_arrives_last_by_7_ms_at_the_first_all_to_all(dlrm, dlrm_files):
    starts = of_json(dlrm_files).start[:, 0]
    first = next(dlrm.calls().rows())
    assert (first["collective"], first["last_rank"]) == ("all_to_all", 2)
    assert first["late_ns"] == starts[2] - starts.min() == 7_116_000
    assert "rank 2 holds the others up" in dlrm.lines()[0]


def test_dlrm_parts_and_replay(dlrm):
    assert_parts_add_up(dlrm)
    assert_replayed(dlrm)
    table = dlrm.what_if(["no-stragglers", "communication:0"])
    assert (table["saved_ns"][1:] > 0).all()


def test_dlrm_one_rank_alone(dlrm_files):
    run = opened(dlrm_files[2:3])
    assert run.missing == [0, 1, 3, 4, 5, 6, 7]
    assert run.lines()[0].startswith("one rank, 2: nobody can tell whom it waits for")
    assert_parts_add_up(run)


# Two ranks of tensor parallel inference.


@pytest.fixture(scope="module")
def llama_files():
    return [real(f"kineto/tp2_llama_rank{rank}.json.gz") for rank in range(2)]


@pytest.fixture(scope="module")
def llama(llama_files):
    return opened(llama_files)


def test_llama_is_on_one_host(llama):
    assert llama.clocks.offset.tolist() == [0, 0]
    assert llama.clocks.drift.tolist() == [0, 0]
    assert llama.missing == []


def test_llama_waits_are_those_of_the_kernels(llama, llama_files):
    assert_waits(llama, of_json(llama_files))


def test_llama_rank_1_is_late(llama, llama_files):
    kernels = of_json(llama_files)
    late = kernels.start[1] - kernels.start[0]
    assert (late > 0).all()
    ranks = llama.ranks
    assert ranks["last"].tolist() == [0, 19]
    # The work of rank 0 waits for all of it but what it hides.
    assert 0.9 * late.sum() < ranks["waited_for_ns"][1] <= late.sum()
    assert all(row.rank == 1 for row in llama.findings)


def test_llama_parts_and_replay(llama):
    assert_parts_add_up(llama)
    assert_replayed(llama)


# Two processes in one file of Nsight Systems.


@pytest.fixture(scope="module")
def two_gpus():
    return opened([real(TWO_GPUS)])


@pytest.fixture(scope="module")
def of_sql():
    """The kernels of NCCL of both GPUs."""
    database = open_read_only(real(TWO_GPUS))
    rows = database.execute(
        "select deviceId, start, end from CUPTI_ACTIVITY_KIND_KERNEL join StringIds "
        "on id = demangledName where value like 'nccl%' order by start"
    ).fetchall()
    database.close()
    spans = [[row[1:] for row in rows if row[0] == device] for device in range(2)]
    return Kernels(*np.array(spans, np.int64).transpose(2, 0, 1))


def test_two_ranks_of_a_file_have_one_clock(two_gpus):
    assert [record.device for record in two_gpus.records] == [0, 1]
    assert len({record.pid for record in two_gpus.records}) == 2
    assert two_gpus.clocks.offset.tolist() == [0, 0]
    assert len(two_gpus.files) == 1


def test_two_ranks_of_a_file_wait_as_the_kernels_do(two_gpus, of_sql):
    assert_waits(two_gpus, of_sql, slack=1)


def test_two_ranks_of_a_file_compute_and_copy_as_the_rows_say(two_gpus):
    """The union of all kernels but those of NCCL, copies and memsets."""
    database = open_read_only(real(TWO_GPUS))
    rows = database.execute(
        "select deviceId, start, end from CUPTI_ACTIVITY_KIND_KERNEL join StringIds "
        "on id = demangledName where value not like 'nccl%' "
        "union all select deviceId, start, end from CUPTI_ACTIVITY_KIND_MEMCPY "
        "union all select deviceId, start, end from CUPTI_ACTIVITY_KIND_MEMSET order by start"
    ).fetchall()
    database.close()
    for record, times in zip(two_gpus.records, two_gpus.step_times, strict=True):
        spans = [row[1:] for row in rows if row[0] == record.device]
        start, end = np.array(spans, np.int64).T
        reached = np.maximum.accumulate(end)
        busy = np.maximum(end - np.maximum(start, np.append(start[:1], reached[:-1])), 0).sum()
        assert times.parts[:, :2].sum() == busy


def test_two_ranks_of_a_file_parts_and_replay(two_gpus):
    assert_parts_add_up(two_gpus)
    assert_replayed(two_gpus)
    first = two_gpus.findings[0]
    assert (first.rank, first.name) == (1, "host-bound")
