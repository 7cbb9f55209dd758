"""Generated exports of bench: realistic shape, exact size, reproducible rows."""

import sqlite3
from collections import defaultdict
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from bench.generate import generate

N_KERNELS = 1_000
PROCESS = 0x1000000
RANGES = (
    "SELECT start, end, eventType, globalTid, coalesce(text, value), textId, endGlobalTid, rangeId "
    "FROM NVTX_EVENTS LEFT JOIN StringIds ON StringIds.id = textId ORDER BY start"
)
LAUNCHES = (
    "SELECT kernel.start, call.start, name.value FROM CUPTI_ACTIVITY_KIND_KERNEL AS kernel "
    "JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS call ON call.correlationId = kernel.correlationId "
    "AND call.globalTid / 16777216 = kernel.globalPid / 16777216 "
    "JOIN StringIds AS name ON name.id = call.nameId"
)


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two processes"])
def export(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "run.sqlite"
    generate(path, N_KERNELS, seed=3, n_processes=request.param)
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def count(export: sqlite3.Connection, table: str) -> int:
    return export.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def seq_of(text: str) -> int | None:
    _, result, rest = text.partition(", seq = ")
    return int(rest.split(",")[0]) if result else None


def test_same_seed_gives_the_same_rows(tmp_path):
    generate(tmp_path / "a.sqlite", N_KERNELS, seed=7)
    generate(tmp_path / "b.sqlite", N_KERNELS, seed=7)
    generate(tmp_path / "c.sqlite", N_KERNELS, seed=8)
    assert dump(tmp_path / "a.sqlite") == dump(tmp_path / "b.sqlite")
    assert dump(tmp_path / "a.sqlite") != dump(tmp_path / "c.sqlite")


@pytest.mark.parametrize("n_kernels", [0, 1, 421, 1_001, 5_000])
def test_has_exactly_the_kernels_asked_for(tmp_path, n_kernels):
    generate(tmp_path / "run.sqlite", n_kernels)
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as connection:
        assert count(connection, "CUPTI_ACTIVITY_KIND_KERNEL") == n_kernels


def test_has_three_calls_and_one_and_a_half_ranges_a_kernel(export):
    assert count(export, "CUPTI_ACTIVITY_KIND_KERNEL") == N_KERNELS
    assert count(export, "CUPTI_ACTIVITY_KIND_RUNTIME") >= 3 * N_KERNELS
    assert count(export, "NVTX_EVENTS") >= 1.5 * N_KERNELS


@pytest.mark.parametrize(
    "table", ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"]
)
def test_rows_are_stored_by_start(export, table):
    starts = [start for (start,) in export.execute(f"SELECT start FROM {table} ORDER BY rowid")]
    assert starts == sorted(starts)


def test_push_pop_ranges_of_a_thread_nest(export):
    open_ends = defaultdict(list)
    for start, end, event_type, thread, *_ in export.execute(RANGES):
        if event_type != 59:
            continue
        stack = open_ends[thread]
        while stack and stack[-1] <= start:
            stack.pop()
        end = float("inf") if end is None else end
        assert start < end
        assert not stack or end <= stack[-1]
        stack.append(end)
    n_processes = count(export, "PROCESSES")
    assert len(open_ends) == 3 * n_processes


def test_capture_ends_inside_ranges_that_stay_open(export):
    open_texts = [row[4] for row in export.execute(RANGES) if row[1] is None and row[2] == 59]
    assert any(text.startswith("iteration ") for text in open_texts)


def test_start_end_ranges_have_ids_and_some_end_on_another_thread(export):
    rows = [row for row in export.execute(RANGES) if row[2] == 60]
    assert rows
    assert all(range_id is not None for *_, range_id in rows)
    assert any(end_thread is not None for *_, end_thread, _ in rows)


def test_some_texts_are_registered_and_some_are_not(export):
    rows = list(export.execute(RANGES))
    for form in ("'traceMarker'", "layer:"):
        assert any(form in text and text_id is not None for *_, text, text_id, _, _ in rows)
    markers = [text_id for *_, text, text_id, _, _ in rows if "'args'" in text]
    assert None in markers
    assert any(text_id is not None for text_id in markers)


def test_backward_ranges_have_a_forward_op_of_their_number_before_them(export):
    forward_starts = defaultdict(list)
    backward = []
    for start, _, _, thread, text, *_ in export.execute(RANGES):
        seq = seq_of(text)
        if seq is None:
            continue
        key = (thread // PROCESS, seq)
        if "Backward" in text:
            backward.append((start, key, text))
        else:
            forward_starts[key].append(start)
    assert backward
    for start, key, text in backward:
        assert any(earlier < start for earlier in forward_starts[key]), text


def test_innermost_forward_op_of_a_number_is_the_one_that_made_the_node(export):
    latest = {}
    pairs = set()
    for _, _, _, thread, text, *_ in export.execute(RANGES):
        key, name = (thread // PROCESS, seq_of(text)), text.split(",")[0]
        if "Backward" in text:
            pairs.add((name.split(": ")[-1], latest[key]))
        elif key[1] is not None:
            latest[key] = name
    assert ("AddmmBackward0", "aten::addmm") in pairs
    assert ("ConvolutionBackward0", "aten::convolution") in pairs
    assert len(pairs) == len({node for node, _ in pairs})


def test_backward_runs_in_descending_order_on_its_own_thread(export):
    engine = "autograd::engine::evaluate_function: "
    rows = [row for row in export.execute(RANGES) if row[4].startswith(engine)]
    threads = {row[3] for row in rows}
    assert len(threads) == count(export, "PROCESSES")
    n_steps = len({row[4] for row in export.execute(RANGES) if row[4].startswith("iteration ")})
    for thread in threads:
        seqs = [seq_of(row[4]) for row in rows if row[3] == thread]
        numbered = [seq for seq in seqs if seq is not None]
        assert len(numbered) < len(seqs), "gradients of parameters have no number"
        n_rises = sum(after > before for before, after in pairwise(numbered))
        assert n_rises < n_steps
        assert len(set(numbered)) == len(numbered)


def test_correlation_ids_are_unique_in_a_process_and_shared_by_two(export):
    ids = defaultdict(list)
    for thread, correlation in export.execute(
        "SELECT globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME"
    ):
        ids[thread // PROCESS].append(correlation)
    assert all(len(numbers) == len(set(numbers)) for numbers in ids.values())
    if len(ids) == 2:
        first, second = ids.values()
        assert set(first) & set(second)


def test_kernels_start_after_their_launch_and_a_few_have_none(export):
    launches = list(export.execute(LAUNCHES))
    assert N_KERNELS - 20 < len(launches) < N_KERNELS
    assert all(kernel > call for kernel, call, _ in launches)
    assert {name for *_, name in launches} >= {"cudaLaunchKernel_v7000", "cuLaunchKernelEx"}


def test_a_few_kernels_have_no_length(export):
    durations = [
        end - start
        for start, end in export.execute("SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL")
    ]
    assert min(durations) == 0
    assert durations.count(0) < 10


def test_every_name_id_has_a_string(export):
    for table, column in (
        ("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "shortName"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId"),
        ("NVTX_EVENTS", "textId"),
    ):
        missing = export.execute(
            f"SELECT count(*) FROM {table} WHERE {column} NOT NULL "
            f"AND {column} NOT IN (SELECT id FROM StringIds)"
        ).fetchone()
        assert missing == (0,)
