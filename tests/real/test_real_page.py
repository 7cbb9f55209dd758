"""The page of every real trace has the numbers of the reports."""

import pytest

from real import open_traces
from support.pages import parsed, unpacked
from support.real_data import traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sqlite")


@pytest.mark.parametrize("path", TRACES)
def test_the_page_has_the_numbers_of_the_reports(path: str) -> None:
    profile = open_traces.profile(path, copies=True)
    html = profile.report().html
    # The step of sd35_compile has 8000 kernels and 60 000 host events.
    assert len(html) < (1_000_000 if len(profile) < 8_000 else 2_000_000)
    page = parsed(html)
    text = profile.summary()
    if text.n_rows:
        assert len(page.rows("tables-table-1")) == text.n_rows
    if text.n_rows and "gpu_ns" in text:
        times = [row["gpu_ns"] for row in page.rows("tables-table-1")]
        assert sum(times) == text["gpu_ns"].sum()
    steps = profile.steps()
    charts = [page.payloads[name] for name in page.payloads if name.startswith("answer-chart-")]
    lengths = []
    for data, arrays in map(unpacked, charts):
        parts = arrays["values"].reshape(len(data["parts"]), -1)
        assert (parts >= 0).all()
        lengths += parts.sum(axis=0).tolist()
    if len(charts) < 8:
        known: dict[tuple[int, int], list[int]] = {}
        for row in steps.rows():
            if row["wall_ns"] is not None:
                known.setdefault((row["pid"], row["device"]), []).append(row["wall_ns"])
        several = [ns for of_gpu in known.values() if len(of_gpu) > 1 for ns in of_gpu]
        assert sorted(lengths) == sorted(several)  # one bar is no chart
