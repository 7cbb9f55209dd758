"""bench.gpu: what can be tested without a GPU, on results of one."""

import gzip
import json
import os
import subprocess
import sys
import time

import pytest
from bench.gpu import __main__ as command
from bench.gpu import counters, forks, operators, page, parts, plan

import fastprof
from support import torch_server

H200 = page.RECORDED


@pytest.fixture(scope="module")
def kernels():
    with gzip.open(H200 / "counters.csv.gz", "rt") as lines:
        return counters.read(lines)


def of_operator(kernels, name):
    return [kernel for kernel in kernels if kernel["op"] == name]


def test_the_counters_of_a_product_are_its_multiply_adds(kernels):
    product = of_operator(kernels, "linear_bf16")[0]
    assert product["tensor"] == {"bf16_dst_fp32": 2 * 8192 * 4096 * 4096}
    assert product["kernel"].startswith("nvjet_sm90") and product["ns"] == 343648
    assert product["read"] > 2 * (8192 + 4096) * 4096
    fp32 = of_operator(kernels, "mm_fp32")[0]
    assert not fp32["tensor"] and fp32["scalar"]["f"] == pytest.approx(2 * 4096**3, rel=1e-3)


def test_sparse_variants_are_not_added_to_the_sum(kernels):
    (names,) = [set(kernel["tensor"]) for kernel in of_operator(kernels, "scaled_mm_fp8")[:1]]
    assert names == {"fp8"}


def test_kernels_of_the_backward_pass_belong_to_the_last_operator(kernels):
    names = [kernel["kernel"] for kernel in of_operator(kernels, "sdpa_fwd_bwd")]
    assert any("flash_bprop" in name for name in names)


def test_units_are_converted():
    lines = [
        "==PROF== Connected\n",
        '"ID","Kernel Name","Range","gpu__time_duration.sum","dram__bytes_read.sum",'
        '"dram__bytes_write.sum","smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"\n',
        '"","","","usecond","Kbyte","byte","inst"\n',
        '"0","k","1:op:add:none","3.5","1,024","7","10"\n',
    ]
    (kernel,) = counters.read(lines)
    assert (kernel["ns"], kernel["read"], kernel["written"]) == (3500, 1024e3, 7)
    assert kernel["scalar"]["f"] == 20


def test_flops_of_products_and_convolutions_are_those_counted():
    compared = {
        each.name: each
        for each in operators.compare(H200 / "operators.json.gz", H200 / "counters.csv.gz")
    }
    assert len(compared) > 50
    names = "linear_bf16 mm_fp32 mm_tf32 mm_fp64 addmm bmm_fp16 baddbmm einsum linear_fwd_bwd "
    names += "scaled_mm_fp8 sdpa_full conv3x3_fp32 conv1x1_bf16_cl conv_depthwise conv_fwd_bwd"
    for name in names.split():
        assert compared[name].flops == pytest.approx(compared[name].counted, rel=0.03), name
    # What exceeds the L2 cache of 60 MiB by far, and is read once.
    streams = ["layer_norm", "softmax", "cross_entropy", "gelu_bf16", "where", "dropout", "cumsum"]
    for name in streams:
        assert compared[name].bytes == pytest.approx(compared[name].dram, rel=0.2), name


def test_the_page_is_that_of_the_results():
    assert command.DOCUMENT.read_text() == page.page()


def test_what_was_not_measured_is_said():
    results = {"steps": {"small": {"ms": [1]}, "lm": {"error": "killed"}}, "runs": {}}
    text = " ".join(page._missing(results).split())
    assert "`lm`, " in text and "`small`, `" in text and "Nsight Systems" in text
    assert "steps: `small`" not in text


def test_a_case_is_measured_once_and_again_after_an_error(tmp_path):
    results = parts.Results(tmp_path, 100)
    results.add("steps", "a", lambda: {"ms": [1.0]})
    results.add("steps", "b", lambda: 1 / 0)
    again = parts.Results(tmp_path, 100)
    again.add("steps", "a", lambda: pytest.fail("measured again"))
    again.add("steps", "b", lambda: {"ms": [2.0]})
    kept = json.loads((tmp_path / "results.json").read_text())
    assert kept == {"steps": {"a": {"ms": [1.0]}, "b": {"ms": [2.0]}}}


def test_no_case_begins_when_no_time_is_left(tmp_path):
    parts.Results(tmp_path, 1).add("steps", "a", lambda: pytest.fail("no time"))


def test_a_forked_function_returns_its_line_or_the_reason():
    assert forks.run_forked(lambda: print('x\n{"ms": [1]}'), 30)["ms"] == [1]
    failed = forks.run_forked(lambda: 1 / 0, 30)
    assert failed["error"] == "no result" and failed["output"][-1].startswith("ZeroDivisionError")
    start = time.perf_counter()
    assert forks.run_forked(lambda: time.sleep(60), 1)["error"] == "killed after 1 s"
    assert time.perf_counter() - start < 30


def test_parts_of_the_plan_are_printed_without_a_gpu():
    words = [sys.executable, "-m", "bench.gpu", "--dry-run"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert all(f"{name}: " in printed for name in parts.PARTS)
    assert "lm sdpa pad fused noclip" in printed and "small, steps 20:28" in printed


def test_an_unknown_part_is_refused():
    words = [sys.executable, "-m", "bench.gpu", "step"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2 and "found step" in done.stderr


def test_facts_of_a_run_are_what_the_page_needs():
    recording = {"first": 3, "n_steps": 2, "unrecorded": {"median_ns": 5}, "after": {}, "path": ""}
    process = {
        "recordings": [recording],
        "step_lengths": {"ns": [1, 2]},
        "versions": {"python": "3.12"},
    }
    facts = parts.facts_of_run({"processes": [process]})
    assert facts["step_ns"] == [1, 2] and facts["first"] == 3 and "path" not in facts


def test_a_program_runs_on_the_cpu():
    sizes = ["--batch=1", "--layers=1", "--dim=64", "--seq=16", "--sdpa", "--steps=2"]
    environment = os.environ | {"BENCH_GPU_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
    done = torch_server.run(plan.PROGRAMS / "lm.py", *sizes, env=environment)
    assert not done.returncode, done.stderr


def test_the_program_of_operators_is_python():
    path = plan.PROGRAMS / "operators.py"
    compile(path.read_text(), path, "exec")


@pytest.mark.parametrize("change", page.CHANGES, ids=lambda each: each.changed)
def test_the_advice_saves_what_was_measured(change):
    steps = json.loads((H200 / "results.json").read_text())["steps"]
    profile = fastprof.open(H200 / "traces" / f"{change.program}.json.gz")
    savings = {row["id"]: row["saving_ns"] / 1e6 for row in profile.advise().head(3).rows()}
    predicted = sum(savings[finding] for finding in change.findings)
    # A launch-bound host is not equally fast in each process: the least time of both counts.
    before, after = (min(steps[name]["ms"]) for name in (change.program, change.changed))
    assert predicted == pytest.approx(before - after, rel=0.2)
