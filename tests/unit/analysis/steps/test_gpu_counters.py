"""Samples of GPU counters (nsys --gpu-metrics-devices): means per step, and what they explain."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

import fastprof
from fastprof.model.table import Table
from support.exports import Export

US = 1000
STEP = 1000 * US
NAMES = ["GPC Clock Frequency [MHz]", "SMs Active [Throughput %]", "Tensor Active [Throughput %]",
         "DRAM Read Bandwidth [Throughput %]", "DRAM Write Bandwidth [Throughput %]",
         "PCIe RX Throughput [Throughput %]"]  # fmt: skip


def recorded(
    path: Path, *clocks: int, gpu: int = 0, device: int = 0, unit: int = 1, slow: float = 1.0
) -> Path:
    """An export with a step for each clock (MHz), whose kernels take as long as the clock allows.

    unit : of the clocks in the file: 1 for MHz, 10**6 for Hz
    """
    export, at, samples = Export(), 0, []
    for i, clock in enumerate(clocks):
        length = int(STEP * max(clocks) / clock * slow)
        export.push_pop(at, at + length - 1, f"step {i}", 1)
        for k in range(8):
            start, corr = at + k * length // 8, i * 8 + k + 1
            export.launch(start, start + US, corr, 1)
            export.kernel(start + US, start + length // 8, corr, name="sgemm", device=device)
        for time in range(at, at + length, 50 * US):
            values = [clock * unit, 80, 50, 30, 10, 99]
            samples += [(time, 1 << 8 | gpu, number, value) for number, value in enumerate(values)]
        at += length
    export.write(path)
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, "
            "value INTEGER)"
        )
        database.execute(
            "CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, sourceId INTEGER, "
            "typeName TEXT, metricId INTEGER, metricName TEXT)"
        )
        database.executemany("INSERT INTO GPU_METRICS VALUES (?, ?, ?, ?)", samples)
        counters = [(1 << 8 | gpu, 0, "GH100", i, name) for i, name in enumerate(NAMES)]
        database.executemany("INSERT INTO TARGET_INFO_GPU_METRICS VALUES (?, ?, ?, ?, ?)", counters)
    return path


def steps_of(path: Path) -> Table:
    return fastprof.open(path).report("steps")


@pytest.mark.parametrize("unit", [1, 10**6], ids=["MHz", "Hz"])
def test_each_step_has_the_means_of_its_samples(tmp_path, unit):
    table = steps_of(recorded(tmp_path / "a.sqlite", 1800, 1800, 1500, 1800, unit=unit))
    np.testing.assert_allclose(table["sm_clock_hz"], [1.8e9, 1.8e9, 1.5e9, 1.8e9], rtol=0.02)
    np.testing.assert_allclose(table["sm_active"].astype(float), 0.8)
    np.testing.assert_allclose(table["tensor_active"].astype(float), 0.5)
    np.testing.assert_allclose(table["dram"].astype(float), 0.4)  # reads and writes
    assert np.isnan(table["nvlink"]).all()


def test_a_step_of_a_lower_clock_is_told_from_one_of_more_work(tmp_path):
    text = steps_of(recorded(tmp_path / "a.sqlite", 1800, 1800, 1200, 1800, 1800)).text()
    line = next(line for line in text.splitlines() if line.startswith("outlier: step 2"))
    assert "SM clock 1.2 GHz" in " ".join(text.split())
    assert "below that of the others: a limit of power or heat" in " ".join(text.split()), line
    assert "SM clock(GHz)" in text


@pytest.mark.parametrize(
    ("clocks", "where"),
    [((1800, 1800, 1200, 1800, 1790), "1.2 GHz in step 2"), ((1000, 1800, 1800, 1000, 1800, 1800),
     "1 GHz in steps 0, 3")],
)  # fmt: skip
def test_idle_tells_a_lower_clock_from_idle_time(tmp_path, clocks, where):
    table = fastprof.open(recorded(tmp_path / "a.sqlite", *clocks)).idle()
    (line,) = (note for note in table.notes if "SM clock" in note)
    assert line == (
        f"the SM clock is {where}, usually 1.8 GHz: kernels take longer there, which is no idle "
        "time"
    )


@pytest.mark.parametrize("clocks", [(1800, 1800, 1790, 1800), (1800, 1200)])
def test_idle_has_no_line_on_equal_clocks_and_few_steps(tmp_path, clocks):
    table = fastprof.open(recorded(tmp_path / "a.sqlite", *clocks)).idle()
    assert not any("SM clock" in note for note in table.notes)


def test_samples_belong_to_the_gpu_of_their_type(tmp_path):
    path = recorded(tmp_path / "a.sqlite", 1800, 1500, gpu=3, device=0)
    assert np.isnan(steps_of(path)["sm_clock_hz"]).all()
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER, "
            "uuid TEXT, numMultiprocessors INTEGER)"
        )
        database.execute("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 100, '', 132)")
    np.testing.assert_allclose(steps_of(path)["sm_clock_hz"], [1.8e9, 1.5e9], rtol=0.02)


def test_without_samples_the_columns_are_unknown_and_not_in_text(tmp_path):
    export = Export()
    for i in range(3):
        export.push_pop(i * STEP, (i + 1) * STEP - 1, f"step {i}", 1)
        export.work(i * STEP + US, duration=500 * US)
    table = steps_of(export.write(tmp_path / "a.sqlite"))
    assert np.isnan(table["sm_clock_hz"]).all()
    assert "SM clock" not in table.text()


def test_a_comparison_tells_clocks_from_work(tmp_path):
    before = recorded(tmp_path / "before.sqlite", *[1800] * 5)
    after = recorded(tmp_path / "after.sqlite", *[1500] * 5, slow=1.2)
    text = str(fastprof.diff(before, after))
    assert "SM clock" in text
    assert "1.8 GHz -> 1.5 GHz (-16.7%): compute-bound kernels take +20% time" in text


def test_a_damaged_table_of_names_leaves_the_columns_unknown(tmp_path):
    path = recorded(tmp_path / "a.sqlite", 1800, 1500)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE TARGET_INFO_GPU_METRICS SET metricName = x'ff00', typeId = 'x'")
    assert np.isnan(steps_of(path)["sm_clock_hz"]).all()
