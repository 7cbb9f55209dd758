"""`counters`: sums by keys, and the bytes that kernels moved beside those of the formulas."""

import fastprof
from support.rocpd_files import Rocpd

MM = "aten::mm, seq = 7, op_id = 3, sizes = [[64, 32], [32, 16]]"


def test_bytes_moved_stand_beside_those_of_the_formula(tmp_path):
    run = Rocpd().range(0, 100, MM, stack=9).call(10, 20, 1)
    run.kernel(30, 1030, 1).counter("FETCH_SIZE", 6, 6).counter("WRITE_SIZE", 4)
    run.kernel(2000, 2500, None, "other").counter("FETCH_SIZE", 1)
    table = fastprof.open(run.write(tmp_path / "run.db")).report("counters")
    first, second = table.rows()
    n_bytes = 16 * 1024
    assert (first["kernel"], first["gpu_ns"], first["moved_bytes"]) == ("gemm", 1000, n_bytes)
    assert first["bytes_per_s"] == n_bytes / 1e-6
    assert second["moved_bytes"] is None
    assert (second["fetched_bytes"], second["FETCH_SIZE"]) == (1024, 1)
    assert table.total["FETCH_SIZE"] == 13
    # Shapes without types: bytes are unknown.
    assert (first["model_bytes"], first["moved_by_model"]) == (None, None)


def test_moved_by_model(tmp_path):
    tensors = ", ".join(
        f"{{'name': '', 'type': 'tensor', 'shape': {shape}, 'dtype': 'float32'}}"
        for shape in ("(64, 32)", "(32, 16)")
    )
    marker = f"{{'mod': 'torch', 'op': 'mm', 'args': [{tensors}]}}"
    run = Rocpd().range(0, 100, marker, stack=9).call(10, 20, 1)
    run.kernel(30, 1030, 1).counter("FETCH_SIZE", 28).counter("WRITE_SIZE", 4)
    (row,) = fastprof.open(run.write(tmp_path / "run.db")).report("counters").rows()
    assert row["model_bytes"] == 4 * (64 * 32 + 32 * 16 + 64 * 16)
    assert row["moved_by_model"] == 32 * 1024 / row["model_bytes"]


def test_selected_kernels_and_other_keys(tmp_path):
    run = Rocpd().kernel(0, 10, 1).counter("A", 1).kernel(20, 40, 2, "add").counter("A", 5)
    profile = fastprof.open(run.write(tmp_path / "run.db"))
    assert [row["A"] for row in profile.report("counters").rows()] == [5, 1]
    assert [row["A"] for row in profile.report("counters", where="kernel=gemm").rows()] == [1]
    assert [row["A"] for row in profile.report("counters", by="device").rows()] == [6]


def test_without_counters(tmp_path):
    profile = fastprof.open(Rocpd().kernel(0, 10, 1).write(tmp_path / "run.db"))
    assert profile.report("counters").notes == (
        "the file has no counters: record with rocprofv3 --pmc NAME ...",
    )
