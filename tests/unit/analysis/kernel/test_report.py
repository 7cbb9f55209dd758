"""One kernel explained."""

import pytest

import fastprof
from fastprof.errors import ReportError
from support.exports import Export
from support.kineto_files import KinetoFile

US = 1000


@pytest.fixture
def profile(opened):
    """Kernels that wait: 1 and 3 for their launch, 2 for its stream, 4 for stream 7."""
    trace = Export().push_pop(0, 400 * US, "aten::mm, seq = 5", tid=1)
    for corr, launch, start, end, stream in (
        (1, 0, 5, 50, 7),
        (2, 10, 51, 60, 7),
        (3, 200, 205, 300, 7),
        (4, 210, 301, 310, 8),
    ):
        trace.launch(launch * US, (launch + 2) * US, corr=corr, tid=1)
        trace.kernel(start * US, end * US, corr=corr, name="gemm", stream=stream)
    trace.kernel(220 * US, 230 * US, corr=None, name="lost", stream=9)
    return opened(trace)


def facts(profile, idx):
    return profile.kernel(idx).facts["kernel"]


def test_a_kernel_waits_for_its_launch_its_stream_or_other_work(profile):
    waited = [facts(profile, idx)["waited"] for idx in (1, 2, 3, 5, 4)]
    assert [(each["for"], each["idx"]) for each in waited] == [
        ("launch", None), ("stream", 1), ("launch", None), ("other work", 3), ("unknown", None),
    ]  # fmt: skip
    assert waited[2]["gpu_idle_ns"] == 145 * US and waited[2]["cause"] == "host-bound"
    assert waited[1]["stream_idle_ns"] == 1 * US and waited[1]["ns"] == 41 * US


def test_its_launch_and_the_kernels_of_its_name(profile):
    result = facts(profile, 3)
    assert result["launch"]["host_ns"] == 2 * US and result["launch"]["to_start_ns"] == 5 * US
    assert result["launch"]["queue_ns"] == 3 * US and result["launch"]["thread"] == 1
    assert result["same_name"] == {
        "kernels": 4, "place": 3, "longer": 0, "median_ns": 27 * US, "min_ns": 9 * US,
        "max_ns": 95 * US,
    }  # fmt: skip


def test_what_runs_around_it(profile):
    rows = [(row["what"], row["idx"], row["gap_ns"]) for row in profile.kernel(3, neighbours=1)]
    assert rows == [("before", 2, None), ("this", 3, 145 * US), ("beside", 4, None)]
    assert [row["overlap_ns"] for row in profile.kernel(3)][-1] == 10 * US


def test_what_is_unknown_has_a_reason(profile):
    table = profile.kernel(4)
    assert table.facts["kernel"]["launch"] is None and table.facts["kernel"]["op"] is None
    assert {"launch", "op", "shape", "line", "cost"} <= table.facts["reasons"].keys()
    assert any(line.startswith("launch unknown: ") for line in table.lead)


def test_the_cost_is_that_of_its_call(tmp_path):
    trace = KinetoFile(deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3"}])
    trace.op(0, 40, "aten::mm", dims=[[64, 32], [32, 16]], types=["float", "float"])
    trace.launch(10, 20, 1).kernel(30, 50, 1, "ampere_sgemm_32x32")
    profile = fastprof.open(trace.write(tmp_path / "net.json.gz"))
    cost = facts(profile, 1)["cost"]
    assert cost["flops"] == 2 * 64 * 32 * 16 and cost["is_exact"]
    assert cost["roof_share"] == pytest.approx(cost["ideal_ns"] / facts(profile, 1)["gpu_ns"])
    faster = profile.kernel(1, bandwidth=100.0).facts["kernel"]["cost"]
    assert faster["bound"] == "bandwidth" and faster["ideal_ns"] > cost["ideal_ns"]
    assert facts(profile, 1)["shape"].startswith("M=16,N=64,K=32")


def test_a_copy_has_a_rate(opened):
    trace = Export().launch(0, 2 * US, corr=1, tid=1, name="cudaMemcpyAsync")
    profile = opened(trace.copy(5 * US, 15 * US, 1, 1, 10_000))
    result = facts(profile, 1)
    assert result["copied_bytes"] == 10_000 and result["bytes_per_s"] == pytest.approx(1e9)
    assert profile.kernel(1).facts["reasons"]["roof"].startswith("copies from and to the host")


def test_without_a_number_it_is_the_longest(profile):
    assert profile.kernel().facts["kernel"]["idx"] == 3


@pytest.mark.parametrize(("idx", "message"), [(6, "there is no kernel 6"), ([1, 2], "of one")])
def test_other_numbers_are_errors(idx, message, profile):
    with pytest.raises(ReportError, match=message):
        profile.kernel(idx)


def test_dict_lines_have_no_times(tmp_path):
    (tmp_path / "net.dict").write_text("{'kShortName': 'k', 'kDuration': 5}\n")
    profile = fastprof.open(tmp_path / "net.dict")
    assert facts(profile, 1)["at_ns"] is None and facts(profile, 1)["waited"] is None
    assert len(profile.kernel(1)) == 1
