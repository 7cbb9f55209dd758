"""The replay of real traces: the recorded lengths, steps it never saw, and a real change."""

import numpy as np
import pytest

from fastprof.analysis.replay.model import Model
from real.open_traces import profile, replay_model
from real.transplants import predictions, with_mean_lags
from support import replay_limits
from support.real_data import traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*.nvvp", "pyprof/*.s*")
# Percent of a step, with the mean latency of its class for each latency: the largest error of a
# step; and percent of all steps that kernels wait for something that no record explains.
MEAN_LAGS = {
    "kineto/nccl_params.json.gz": (0.05, 0.1),
    "kineto/owlv2_h100.json.gz": (0.05, 0.1),
    "kineto/recommender_2023.json.gz": (0.05, 61.0),  # lacks the calls of events
    "kineto/resnet18_mi300_full.json.gz": (0.1, 0.1),
    "kineto/resnet50_2021_4workers.json.gz": (0.1, 0.1),
    "kineto/resnet50_2021_stack_memory.json.gz": (0.05, 0.1),
    "kineto/resnet_checkpoint_mi300.json.gz": (2.0, 4.0),
    "kineto/resnet_v100_2024_fwdbwd.json.gz": (0.1, 0.1),
    "kineto/train_v100_2022.json.gz": (6.5, 0.5),  # graphs whose kernels overlap on one stream
    "kineto/train_v100_2022_control.json.gz": (0.6, 1.0),
    "nsys/cudagraph_a100_nsys2024.sqlite": (0.01, 0.1),
    "nsys/no_nvtx_rtx6000_nsys2021.sqlite": (0.3, 0.1),
}
# Percent of a step: the largest error of the length of a step, replayed in the graph of another.
OUT_OF_SAMPLE = {
    "kineto/owlv2_h100.json.gz": 0.05,
    "kineto/resnet18_mi300_full.json.gz": 0.05,
    "kineto/resnet50_2021_4workers.json.gz": 0.05,
    "kineto/resnet50_2021_stack_memory.json.gz": 0.05,
    "kineto/resnet_checkpoint_mi300.json.gz": 0.3,
    "kineto/train_v100_2022_control.json.gz": 3.0,
    "nsys/cudagraph_a100_nsys2024.sqlite": 0.05,
}
# The same with the times of kernels only, where the GPU decides the length of the steps.
KERNELS_ONLY = {
    "kineto/owlv2_h100.json.gz": 3.0,
    "kineto/resnet_checkpoint_mi300.json.gz": 0.3,
    "kineto/resnet_v100_2024_fwdbwd.json.gz": 0.1,
    "nsys/cudagraph_a100_nsys2024.sqlite": 0.05,
}


@pytest.mark.parametrize("path", TRACES)
def test_a_replay_without_changes_has_the_recorded_lengths(path: str) -> None:
    trace = profile(path, copies=True)
    if not len(trace):
        pytest.skip("no GPU work")
    model = replay_model(path)
    assert np.abs(model.run(model.base).wall - model.wall).max(initial=0) == 0
    assert model.graph.n_cut == 0


@pytest.mark.parametrize("path", TRACES)
def test_some_steps_replay_as_in_the_whole_run(path: str) -> None:
    trace = profile(path, copies=True)
    model = Model(trace, most=1)
    if model.profile is trace:
        pytest.skip("no more than five steps")
    assert len(model.rows) == 5
    assert np.abs(model.run(model.base).wall - model.wall).max(initial=0) == 0


@pytest.mark.parametrize("path", MEAN_LAGS)
def test_mean_latencies_suffice(path: str) -> None:
    """Waits are computed: the steps keep their lengths if no single latency is kept."""
    model = replay_model(path)
    most, unexplained = MEAN_LAGS[path]
    error = np.abs(model.run(with_mean_lags(model)).wall / model.wall - 1)
    assert 100 * error.max() <= most
    assert 100 * model.graph.unexplained <= unexplained * model.wall.sum()


@pytest.mark.parametrize("path", OUT_OF_SAMPLE)
def test_a_step_predicts_another(path: str) -> None:
    result = predictions(replay_model(path), with_host=True)
    assert len(result) >= 2
    assert max(abs(error) for _, _, error in result) <= OUT_OF_SAMPLE[path] / 100


@pytest.mark.parametrize("path", KERNELS_ONLY)
def test_kernels_alone_predict_steps_that_the_gpu_bounds(path: str) -> None:
    result = predictions(replay_model(path), with_host=False)
    assert len(result) >= 2
    assert max(abs(error) for _, _, error in result) <= KERNELS_ONLY[path] / 100


def test_hidden_data_loading() -> None:
    """resnet50 without loader workers, and the same program with four."""
    before = profile("kineto/resnet50_2021_stack_memory.json.gz", copies=True)
    facts = before.whatif(no_data_loading=True).facts
    assert facts["changes"][0]["wall_ns"] == pytest.approx(118.6e6, rel=0.01)
    after = profile("kineto/resnet50_2021_4workers.json.gz", copies=True).whatif().facts
    measured = np.median([step["wall_ns"] for step in after["steps"]])
    assert facts["changes"][0]["wall_ns"] == pytest.approx(measured, rel=0.1)


@pytest.mark.every_trace
@pytest.mark.parametrize("path", TRACES)
def test_every_change_obeys_the_limits(path: str) -> None:
    trace = profile(path, copies=True)
    if not len(trace):
        pytest.skip("no GPU work")
    replay_limits.check_changes(replay_model(path))


@pytest.mark.every_trace
@pytest.mark.parametrize("path", TRACES)
def test_no_part_saves_more_than_it_takes_of_the_path(path: str) -> None:
    trace = profile(path, copies=True)
    if not len(trace):
        pytest.skip("no GPU work")
    replay_limits.check_table(trace)
