"""The parts of a comparison: alignment, rounding, clocks, and the time line of steps."""

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastprof
from fastprof.analysis.diff.matching import aligned
from fastprof.analysis.diff.measure import side_of
from fastprof.analysis.diff.side import combined
from fastprof.analysis.diff.waterfall import clocks_of, means
from support.kineto_files import KinetoFile

sequences = st.lists(st.sampled_from(["a", "b", "c", None]), max_size=8)


def longest(left: list[str | None], right: list[str | None]) -> int:
    """The length of the longest common subsequence, by trying all."""

    def contains(items: tuple[str | None, ...]) -> bool:
        rest = iter(right)
        return all(any(item == other for other in rest) for item in items)

    known = [each for each in left if each is not None]
    return next(
        n
        for n in range(len(known), -1, -1)
        if any(contains(items) for items in combinations(known, n))
    )


@given(sequences, sequences)
def test_an_alignment_is_a_longest_common_subsequence(left, right):
    pairs = aligned(left, right)
    assert all(left[i] == right[j] is not None for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))
    assert len(pairs) == longest(left, right)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=20), st.integers(1, 50))
def test_means_add_up_to_the_mean_of_the_sum(sums, n):
    result = means(np.array(sums, np.int64), n)
    assert int(result.sum()) == (2 * sum(sums) + n) // (2 * n)
    assert all(abs(mean * n - each) < n for mean, each in zip(result.tolist(), sums, strict=True))


def test_means_of_equal_remainders_keep_their_order():
    assert means(np.array([1, 1, 1]), 3).tolist() == [1, 0, 0]
    assert means(np.array([5, 4]), 3).tolist() == [2, 1]


TIMES = np.array([100_000, 50_000, 30_000, 20_000, 10_000])


@pytest.mark.parametrize("factor", [0.5, 0.97, 1.02, 1.3])
def test_a_common_factor_is_found(factor):
    result = clocks_of(TIMES, np.rint(TIMES * factor).astype(np.int64))
    assert result.factor == pytest.approx(factor, rel=1e-3)
    back = clocks_of(np.rint(TIMES * factor).astype(np.int64), TIMES)
    assert back.half == -result.half


@pytest.mark.parametrize(
    "factors",
    [
        [1, 1, 1, 1, 1],
        [1.005, 1.005, 1.005, 1.005, 1.005],  # too small
        [1.3, 1, 1, 1, 1],  # one kernel, with half of the time
        [1.3, 1.3, 1, 1, 1],
        [1.1, 0.9, 1.2, 1.4, 0.8],
    ],
)
def test_no_common_factor(factors):
    assert clocks_of(TIMES, np.rint(TIMES * factors).astype(np.int64)) is None


def two_gpus(path: Path) -> fastprof.Profile:
    """Three steps on two GPUs: work overlaps, crosses the end of a step, and one GPU idles."""
    trace = KinetoFile().launch(100, 105, 100).kernel(200, 900, 100, "before")
    work = [
        # step, GPU, stream, start, end
        (0, 0, 7, 2_000, 9_000),
        (0, 1, 7, 2_500, 6_000),
        (1, 0, 7, 10_500, 17_000),
        (1, 0, 8, 8_000, 12_000),  # begins in the window of the step before
        (1, 1, 7, 12_000, 14_000),
        (1, 0, 9, 16_000, 16_000),
        (2, 0, 7, 21_000, 28_000),
        (2, 0, 8, 16_500, 22_000),
        (2, 1, 7, 27_000, 27_800),
    ]
    for number in range(3):
        trace.annotation(1_000 + 3_000 * number, 3_900 + 3_000 * number, f"ProfilerStep#{number}")
    for i, (step, device, stream, start, end) in enumerate(work, 1):
        launched = 1_100 + 3_000 * step + 10 * i
        trace.launch(launched, launched + 5, i)
        trace.kernel(start, end, i, f"kernel_{i}", device=device, stream=stream)
    return fastprof.open(trace.write(path))


def test_work_and_gaps_are_cut_at_the_end_of_a_step(tmp_path):
    result = side_of(two_gpus(tmp_path / "two.json"))
    windows = result.windows
    assert windows["device"].tolist() == [0, 1] * 3
    assert windows["wall_ns"].tolist() == [8_000, 8_000, 8_000, 8_000, 11_000, 11_000]
    own = np.zeros((result.n_groups, 6), np.int64)
    own[result.group, result.window] = result.own_ns
    by_kernel = dict(zip(result.texts("kernel"), own.tolist(), strict=True))
    assert by_kernel == {
        "kernel_1": [7_000, 0, 0, 0, 0, 0],
        "kernel_2": [0, 3_500, 0, 0, 0, 0],
        "kernel_4": [0, 0, 3_000, 0, 0, 0],
        "kernel_3": [0, 0, 5_000, 0, 0, 0],
        "kernel_5": [0, 0, 0, 2_000, 0, 0],
        "kernel_6": [0, 0, 0, 0, 0, 0],
        "kernel_8": [0, 0, 0, 0, 5_000, 0],
        "kernel_7": [0, 0, 0, 0, 6_000, 0],
        "kernel_9": [0, 0, 0, 0, 0, 800],
    }
    assert result.idle.sum(axis=1).tolist() == [1_000, 4_500, 0, 6_000, 0, 10_200]
    assert result.kernels.sum() == 9


def test_combined_sides_have_the_windows_of_all(tmp_path):
    one = side_of(two_gpus(tmp_path / "one.json"))
    both = combined([one, one])
    assert both.n_windows == 2 * one.n_windows
    assert both.windows["rank"].tolist() == [0] * 6 + [1] * 6
    for name in ("calls", "kernels", "gpu_ns", "own"):
        assert getattr(both, name).tolist() == (2 * getattr(one, name)).tolist()
    assert both.texts("kernel") == one.texts("kernel")
    busy = np.bincount(both.window, both.own_ns, both.n_windows)
    assert busy.tolist() == both.windows["busy_ns"].tolist()
