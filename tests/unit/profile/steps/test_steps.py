"""Which kernels belong to which training step, by each source of steps."""

from itertools import pairwise

import numpy as np
import pytest

from fastprof import StepsError
from fastprof.profile.steps.kernel_steps import StepsOfKernels
from fastprof.profile.steps.ranges import numbers
from support import dict_lines
from support.kineto_files import KinetoFile


def work(trace: KinetoFile, *calls: tuple[int, str], lag: int = 500, **launch: int) -> None:
    """Kernels of 100 ns that the GPU starts `lag` ns after their launch."""
    for start, name in calls:
        corr = len(trace.events) + 1
        trace.launch(start, start + 10, corr, **launch)  # type: ignore[arg-type]
        trace.kernel(start + lag, start + lag + 100, corr, name)


def steps_by_start(found: StepsOfKernels) -> list[int]:
    return found.number[found.of_kernel[found.of_kernel >= 0]].tolist()


def two_steps(*starts: int, label: str = "ProfilerStep#{}") -> KinetoFile:
    trace = KinetoFile()
    for i, start in enumerate(starts):
        trace.annotation(start, start + 1000, label.format(i + 7))
    return trace


def test_the_launch_decides_and_not_the_gpu(opened):
    trace = two_steps(1000, 2000)
    work(trace, (1100, "a"), (1900, "b"), (2000, "c"), (2999, "d"), lag=5000)
    steps = opened(trace).find_steps()
    assert steps.source == "ProfilerStep"
    assert steps.description == "2 steps (ProfilerStep#7 to #8)"
    assert steps.of_kernel.tolist() == [0, 0, 1, 1]
    assert steps.gpu_start.tolist() == [6100, 7000]
    assert steps.gpu_end.tolist() == [7000, 8099]


def test_kernels_outside_of_steps_have_none(opened):
    trace = two_steps(1000, 3000)
    work(trace, (900, "early"), (1100, "a"), (2500, "between"), (3100, "b"), (4000, "late"))
    trace.kernel(100, 200, 999, "without launch").kernel(9000, 9100, 998, "without launch")
    profile = opened(trace)
    steps = profile.find_steps()
    assert steps.of_kernel.tolist() == [-1, -1, 0, -1, 1, -1, -1]
    assert steps.before_first == 2
    step = profile.kernels["step"]
    assert step.tolist() == [None, None, 7, None, 8, None, None]


def test_all_threads_of_a_process_share_its_steps(opened):
    trace = two_steps(1000, 2000)
    work(trace, (1100, "forward"), (2100, "forward"))
    work(trace, (1500, "backward"), (2500, "backward"), tid=2)
    assert steps_by_start(opened(trace).find_steps()) == [7, 7, 8, 8]


def test_each_process_has_steps_of_its_own(opened):
    trace = two_steps(1000, 2000)
    for i, start in enumerate((1500, 2500)):
        trace.op(start, start + 1000, f"ProfilerStep#{i + 7}", pid=200, cat="user_annotation")
    work(trace, (1900, "a"), (2100, "b"))
    work(trace, (1910, "c"), (2110, "d"), pid=200)
    steps = opened(trace).find_steps()
    assert steps.pid.tolist() == [100, 200, 100, 200]
    assert steps.number.tolist() == [7, 7, 8, 8]
    assert steps.of_kernel.tolist() == [0, 1, 2, 1]
    assert steps.description == "4 steps in 2 processes (ProfilerStep#7 to #8)"


def test_kernels_of_a_graph_belong_to_the_step_that_launched_it(opened):
    trace = two_steps(1000, 2000)
    for start, corr in ((1100, 1), (2100, 2)):
        trace.launch(start, start + 10, corr, name="cudaGraphLaunch")
        trace.kernel(start + 2000, start + 2100, corr, "a", **{"graph node id": 5})
        trace.kernel(start + 2100, start + 2200, corr, "b", **{"graph node id": 6})
    assert steps_by_start(opened(trace).find_steps()) == [7, 7, 8, 8]


def test_an_unclosed_step_ends_with_its_work(opened, tmp_path):
    trace = two_steps(1000, 2000)
    work(trace, (1100, "a"), (2100, "b"))
    profile = opened(trace)
    profile.about.steps.end[1] = np.iinfo(np.int64).max
    steps = profile.find_steps()
    assert steps.end.tolist() == [2000, 2700]
    assert steps.length.tolist() == [700, 1000]


@pytest.mark.parametrize(
    ("label", "source", "number"),
    [
        ("step {}", "range step *", [7, 8, 9]),
        ("train_step", "range train_step", [1, 2, 3]),
        ("epoch 3, iteration {}", "range epoch *, iteration *", [7, 8, 9]),
    ],
)
def test_ranges_with_a_repeated_label_are_steps(opened, label, source, number):
    trace = two_steps(1000, 2000, 3000, label=label)
    trace.annotation(0, 9000, "train")
    for start in (1000, 2000, 3000):
        trace.annotation(start + 10, start + 900, "forward")
        work(trace, (start + 100, "a"), (start + 950, "b"))
    steps = opened(trace).find_steps()
    assert steps.source == source
    assert steps.number.tolist() == number
    assert steps.of_kernel.tolist() == [0, 0, 1, 1, 2, 2]


def test_ranges_that_launch_a_part_of_the_work_are_no_steps(opened):
    trace = two_steps(1000, 2000, label="forward")
    work(trace, *((start, f"k{start}") for start in (1100, 1200, 1300, 1400, 2100, 2200, 2300)))
    work(trace, (5000, "other"))
    steps = opened(trace).find_steps()
    assert steps.source == "none"
    assert "'range forward' repeats but launches 87.5 % of the GPU time, expected 90 %" in (
        steps.description
    )
    assert opened(trace).find_steps("range:^for").of_kernel.tolist() == [0] * 4 + [1] * 3 + [-1]


def test_ranges_on_threads_that_launch_nothing_are_no_steps(opened):
    trace = KinetoFile()
    for start in (1000, 2000):
        trace.annotation(start, start + 1000, "step", tid=9)
    work(trace, (1100, "a"), (2100, "b"))
    with pytest.raises(StepsError, match=r"no steps by 'range': no range repeats\Z"):
        opened(trace).find_steps("range")


def test_a_nested_match_is_part_of_the_outer_step(opened):
    trace = two_steps(1000, 2000, label="step {}")
    trace.annotation(1100, 1200, "step 7 loss")
    work(trace, (1150, "a"), (1300, "b"), (2100, "c"))
    steps = opened(trace).find_steps("range:step")
    assert steps.of_kernel.tolist() == [0, 0, 1]
    assert steps.number.tolist() == [7, 8]


def test_a_range_of_torch_may_be_requested(opened):
    """Under emit_nvtx, `record_function` ranges look like operators."""
    trace = KinetoFile()
    for start in (1000, 2000):
        trace.op(start, start + 500, "aten::step").op(start, start + 100, "aten::step")
        trace.op(start + 500, start + 600, "aten::step", tid=9)
    work(trace, (1100, "a"), (1700, "b"), (2100, "c"))
    steps = opened(trace).find_steps("range:aten::step")
    assert steps.start.tolist() == [1000, 2000]
    assert steps.of_kernel.tolist() == [0, -1, 1]


def test_a_single_profiler_step_is_searched_for_repetition(opened):
    trace = two_steps(1000)
    work(trace, *((1000 + 100 * i, "ab"[i % 2]) for i in range(6)))
    profile = opened(trace)
    assert profile.find_steps().source == "repetition"
    assert len(profile.find_steps("ProfilerStep")) == 1


def test_a_profile_with_other_steps_by_default(opened):
    trace = two_steps(1000, 2000)
    work(trace, (1100, "a"), (2100, "a"), (2200, "b"))
    profile = opened(trace)
    whole = profile.with_steps("none")
    assert (len(profile.find_steps()), len(whole.find_steps())) == (2, 1)
    assert len(profile.steps()) == 2 and len(whole.steps()) == 1 == len(whole.trim(":").steps())
    assert len(whole.find_steps("ProfilerStep")) == 2  # what is asked for counts
    assert len(profile.trim("ProfilerStep#8").with_steps("anchor:b").find_steps()) == 1
    with pytest.raises(StepsError, match="DataLoader"):
        profile.with_steps("DataLoader")


def repeated(n: int, kernels: str, first: int = 0) -> KinetoFile:
    trace = KinetoFile()
    work(trace, *((first + 1000 * i, name) for i, name in enumerate(kernels * n)))
    return trace


def test_steps_by_repetition_begin_with_the_first_kernel(opened):
    """`b` is the first with one kernel per step; the two `a` before it repeat as well."""
    steps = opened(repeated(3, "aabac")).find_steps()
    assert steps.source == "repetition"
    assert steps.description == "3 steps found by repetition: 100 % of the GPU time repeats"
    assert steps.confidence == 1
    assert steps.of_kernel.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert steps.start.tolist() == [0, 5000, 10000]
    assert steps.end.tolist() == [5000, 10000, 14600]
    # Before the first step, no work ends.
    assert steps.length.tolist() == steps.gpu_length.tolist() == [-1, 5000, 5000]
    assert (steps.median, steps.mean, steps.spread) == (5000, 5000, 0)


def test_layers_are_not_steps_if_the_backward_pass_follows(opened):
    """Every kernel runs three times, but the first "step" has no d, the last one all of them."""
    steps = opened(repeated(1, "abcabcabcdedede")).find_steps()
    assert steps.source == "none"
    assert "60 % of the GPU time repeats in equal steps, expected 98 %" in steps.description


def test_a_window_that_cuts_steps_does_not_repeat(opened):
    profile = opened(repeated(1, "cdabcdabcdab" + "abc"))
    assert profile.find_steps().source == "none"
    with pytest.raises(StepsError, match="expected 98 %; range:REGEX or anchor:REGEX"):
        profile.find_steps("repetition")


def test_single_kernels_are_not_steps(opened):
    assert opened(repeated(9, "a")).find_steps().source == "none"


def test_repetition_ignores_copies(opened):
    trace = repeated(3, "abc")
    trace.launch(100, 110, 777).copy(650, 90_650, 777, "Memcpy HtoD", 8)
    steps = opened(trace).find_steps()
    assert (steps.source, len(steps)) == ("repetition", 3)


def test_an_anchor_begins_steps_and_the_last_one_is_cut(opened):
    trace = repeated(1, "xyabcabcab")
    steps = opened(trace).find_steps("anchor:^a$")
    assert steps.of_kernel.tolist() == [-1, -1, 0, 0, 0, 1, 1, 1, 2, 2]
    assert steps.before_first == 2
    assert steps.is_counted.tolist() == [True, True, False]
    assert steps.notes == ("means exclude step 3: the capture ends within it",)
    # The work before the first step ends at 1600.
    assert steps.length.tolist() == [3000, 3000, 2000]
    assert steps.median == 3000


def test_an_anchor_may_be_an_operator_or_only_long_kernels(opened):
    trace = repeated(2, "abc")
    trace.op(990, 1010, "aten::mm").op(3990, 4010, "aten::mm")
    trace.launch(7000, 7010, 900).kernel(7500, 7900, 900, "a")
    profile = opened(trace)
    assert profile.find_steps("anchor:^mm$").start.tolist() == [1000, 4000]
    assert profile.find_steps("anchor:a").start.tolist() == [0, 3000, 7000]
    assert profile.find_steps("anchor:a>0.2us").start.tolist() == [7000]


def test_launches_of_an_anchor_in_a_row_begin_one_step(opened):
    steps = opened(repeated(2, "aab")).find_steps("anchor:a")
    assert steps.of_kernel.tolist() == [0, 0, 0, 1, 1, 1]


def test_a_slow_first_step_is_not_averaged(opened):
    trace = KinetoFile()
    ends = (0, 4000, 5000, 6000, 7000)
    for i, (start, end) in enumerate(pairwise(ends)):
        trace.annotation(start, end, f"ProfilerStep#{i}")
        work(trace, (end - 700, "a"))
    steps = opened(trace).find_steps()
    assert steps.is_counted.tolist() == [False, True, True, True]
    assert steps.notes == ("means exclude the first step: it takes 3.9 times the median",)
    assert (steps.median, steps.mean) == (1000, 1000)


def test_gpu_lengths_begin_where_the_work_before_ends(opened):
    trace = two_steps(1000, 2000)
    work(trace, (900, "early"), (1100, "a"), (2100, "b"), lag=3000)
    steps = opened(trace).find_steps()
    assert steps.gpu_length.tolist() == [200, 1000]
    assert steps.length.tolist() == [200, 1000]


def test_none_makes_the_capture_one_step(opened):
    trace = two_steps(1000, 2000)
    work(trace, (900, "early"), (1100, "a"))
    steps = opened(trace).find_steps("none")
    assert (steps.source, steps.description) == (
        "none",
        "one step, all of the capture: requested",
    )
    assert steps.of_kernel.tolist() == [0, 0]
    assert (steps.start.tolist(), steps.end.tolist()) == ([900], [1700])
    assert steps.number.tolist() == [1]


def test_an_empty_capture_is_one_step(opened):
    steps = opened(KinetoFile().annotation(0, 10, "a")).find_steps()
    assert (len(steps), len(steps.of_kernel)) == (1, 0)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("profilerstep", "unknown source of steps 'profilerstep': expected ProfilerStep, range, "),
        ("repetitions", "similar: 'repetition'"),
        ("range:", "unknown source of steps 'range:'"),
        ("range:(", r"invalid regular expression '\(': "),
        ("range:iteratoin", "no range on a thread that launches kernels matches 'iteratoin'; "),
        ("range:iteratoin", "nearest: 'iteration [78]', 'iteration [78]'"),
        ("anchor:sgem_x", "no kernel or operator matches 'sgem_x'; nearest: 'sgemm_x'"),
        (
            "anchor:gemm>5ms",
            r"no kernel that matches 'gemm' takes over 5 ms; the longest .* 100 ns",
        ),
        ("anchor:unlaunched", "the launches of the kernels that match 'unlaunched' are not record"),
        ("ProfilerStep", "no steps by 'ProfilerStep': expected ranges ProfilerStep#N, found none"),
    ],
)
def test_unknown_steps_are_an_error_of_one_line(opened, source, message):
    trace = two_steps(1000, 2000, label="iteration {}")
    work(trace, (1100, "sgemm_x"), (2100, "sgemm_x"))
    trace.kernel(100, 200, 998, "unlaunched")
    with pytest.raises(StepsError, match=message) as raised:
        opened(trace).find_steps(source)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["step 3", "step 4"], [3, 4]),
        (["epoch 1 step 3", "epoch 1 step 4"], [3, 4]),
        (["step 3 of 90", "step 4 of 90"], [3, 4]),
        (["epoch 1 step 3", "epoch 2 step 3"], [1, 2]),
        (["step", "step"], [1, 2]),
        (["step 5", "step 5"], [1, 2]),
        (["step 5", "last step"], [1, 2]),
        (["step 5"], [5]),
    ],
)
def test_a_step_has_the_number_of_its_label(labels, expected):
    assert numbers(labels) == expected


def test_dict_lines_are_one_step(opened):
    trace = two_steps(1000, 2000)
    work(trace, (1100, "a"), (2100, "b"))
    profile = dict_lines.reopened(opened(trace))
    steps = profile.find_steps()
    assert steps.description == "one step, all kernels: dict lines record no times"
    assert steps.of_kernel.tolist() == [0, 0]
    assert np.isnan(steps.mean)
    with pytest.raises(StepsError, match="dict lines record no times; find steps in the trace"):
        profile.find_steps("repetition")


def test_the_first_step_begins_where_work_before_it_ends_on_its_stream(opened):
    """Work without a launch runs on stream 7, while the step has begun on stream 8."""
    trace = two_steps(1000, 2000)
    trace.kernel(500, 2900, 1, stream=7)
    trace.launch(1010, 1020, 2).kernel(1100, 1200, 2, stream=8)
    trace.launch(1030, 1040, 3).kernel(3000, 3500, 3, stream=7)
    trace.launch(2010, 2020, 4).kernel(4000, 4500, 4, stream=7)
    steps = opened(trace).find_steps()
    assert steps.length.tolist() == [3500 - 2900, 1000]
    assert steps.is_counted.tolist() == [True, True]


def test_a_step_with_less_than_half_of_the_work_at_an_end_is_cut(opened):
    trace = KinetoFile()
    for i in range(4):
        trace.annotation(1000 * i, 1000 * (i + 1), f"ProfilerStep#{i}")
        kernels = ((100, "a"), (200, "b"), (300, "c")) if i < 3 else ((100, "a"),)
        work(trace, *[(1000 * i + at, name) for at, name in kernels])
    steps = opened(trace).find_steps()
    assert steps.is_cut.tolist() == [True, False, False, True]
    assert steps.is_counted.tolist() == [False, True, True, False]
    assert steps.notes == (
        "means exclude step 3: the capture ends within it",
        "means exclude step 0: the GPU work before it is not recorded",
    )
