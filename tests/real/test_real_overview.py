"""`overview` of every real trace: one screen, and numbers that add up."""

import pytest

from real.open_traces import profile, report
from support.real_data import traces

TRACES = traces("*/*")


@pytest.mark.parametrize("path", TRACES)
def test_every_trace_fits_a_screen(path):
    trace = profile(path, copies=True)
    result = report(path, "overview")
    lines = result.text().splitlines()
    assert len(lines) <= 45
    assert [line for line in lines if len(line) > 100 and trace.name not in line] == []
    assert not any("(too narrow" in line for line in lines)


def test_the_step_of_a_real_training_run():
    result = profile("kineto/resnet50_2021_stack_memory.json.gz", copies=True).overview()
    text = result.text()
    assert "step 175.5 ms (median 175.2 ms, 166 ms to 182.2 ms), 1516 kernels and copies" in text
    rows = {row["cause"]: row for row in result["idle"].rows()}
    assert (
        rows["data loading"]["where"]
        == "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    )
    assert 0.3 < rows["data loading"]["share"] < 0.35
    assert result.facts["next"][2].endswith("--by line")
