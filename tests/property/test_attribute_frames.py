"""The chain of labels of each launch of a trace, against a search of all ranges."""

from collections import Counter
from dataclasses import fields

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from fastprof.model.trace import Configs, Kernels, Launches, Ranges, Recording, label_text
from fastprof.profile.callpath.attribution import attribute as attributed
from fastprof.profile.callpath.nesting import nest
from property.intervals import Interval, chain, columns, frozen, intervals, is_open, nested
from support.hypothesis_profiles import examples

N_THREADS = 3


def attribute(trace):
    return attributed(nest(trace)).attribution


LABELS = ["step", "layer:one", "\1aten::mm", "\1MmBackward0", "\1aten::mm, sizes = [[2], []]"]

RANGE_NUMBERS = st.lists(
    st.tuples(st.integers(0, len(LABELS) - 1), st.integers(-1, 3)), min_size=12, max_size=12
)
KERNELS = st.lists(st.tuples(st.integers(-1, 9), st.integers(-1, 9)), max_size=8)


def numbers(n, value=-1, dtype=np.int32):
    return frozen([value] * n, dtype)


def kernels_of(rows):
    """Kernels with these (launch, origin); all other columns are unknown."""
    columns = {field.name: numbers(len(rows)) for field in fields(Kernels)}
    columns["configs"] = Configs(*(numbers(1) for _ in fields(Configs)))
    columns["config"] = numbers(len(rows), 0)
    columns["launch"] = frozen([launch for launch, _ in rows], np.int32)
    columns["origin"] = frozen([origin for _, origin in rows], np.int32)
    return Kernels(**columns)


def ranges_of(rows, label_and_seq):
    label, seq = ([pair[i] for pair in label_and_seq[: len(rows)]] for i in range(2))
    op_id = numbers(len(rows), -1, np.int64)
    return Ranges(*columns(rows), frozen(label, np.int32), frozen(seq, np.int64), op_id)


def trace_of(ranges, launches, kernels):
    n = len(launches)
    start, _, thread = columns(launches)
    return Recording(
        name="made.sqlite",
        kernels=kernels_of([[at if at < n else -1 for at in row] for row in kernels]),
        launches=Launches(start, thread, numbers(n)),
        ranges=ranges,
        phases=ranges_of([], []),
        labels=LABELS,
        strings=[],
        threads=frozen(range(N_THREADS), np.int64),
        process_of_thread=numbers(N_THREADS, 0),
        processes=frozen([0], np.int64),
    )


def labels_of_frame(found, trace, frame):
    return [
        trace.labels[trace.ranges.label[found.frame_range[at]]]
        for at in chain(found.frame_parent, frame)
    ]


def labels_of_node(found, frame):
    node = found.node_of_frame[frame] if frame >= 0 else -1
    return [found.meanings[found.node_label[at]].label for at in chain(found.node_parent, node)]


@examples(300)
@given(
    nested(N_THREADS) | intervals(N_THREADS),
    intervals(N_THREADS, max_size=10),
    RANGE_NUMBERS,
    KERNELS,
)
@example(
    [Interval(0, 5), Interval(3, 9)], [Interval(4, 4), Interval(6, 7)], [(0, -1)] * 12, [(1, 0)]
)
def test_a_kernel_has_the_labels_that_were_open_when_it_was_launched(
    ranges, launches, label_and_seq, kernels
):
    trace = trace_of(ranges_of(ranges, label_and_seq), launches, kernels)
    result = attribute(trace)

    said = [(row.thread, *label_and_seq[i]) for i, row in enumerate(ranges)]
    forward = {thread for thread, label, seq in said if label in (2, 4) and seq > 0}
    engine = {thread for thread, label, _ in said if label == 3} - forward
    launched = Counter(launch.thread for launch in launches)
    others = sorted({thread for thread, *_ in said} - engine, key=lambda i: (-launched[i], i))

    def around(at):
        """The labels that may be around a launch: those of its thread, or of the caller of the
        engine, which several threads may be: then of one of them, or none."""
        if at < 0:
            return [[]]
        t, _, thread = launches[at]
        own, *waiting = (
            [LABELS[label_and_seq[i][0]] for i, row in enumerate(ranges) if is_open(row, t, each)]
            for each in (thread, *(others if thread in engine else []))
        )
        return [own] if own else [*filter(None, waiting), []]

    for i, (launch, origin) in enumerate(
        zip(trace.kernels.launch, trace.kernels.origin, strict=True)
    ):
        frame, launch_frame = result.frame_of_kernel[i], result.launch_frame_of_kernel[i]
        assert labels_of_frame(result, trace, launch_frame) in around(launch)
        assert labels_of_frame(result, trace, frame) in [*around(origin), *around(launch)]
        texts = [label_text(label) for label in labels_of_frame(result, trace, frame)]
        assert labels_of_node(result, frame) == texts


@examples(200)
@given(nested(N_THREADS) | intervals(N_THREADS), RANGE_NUMBERS)
def test_what_points_at_frames_and_nodes_points_into_them(ranges, label_and_seq):
    result = attribute(trace_of(ranges_of(ranges, label_and_seq), [], []))
    n_frames, n_nodes = len(result.frame_parent), len(result.node_parent)
    for name in ("frame_range", "node_of_frame", "backward_of_frame", "meaning_of_frame",
                 "links_of_frame"):  # fmt: skip
        assert len(getattr(result, name)) == n_frames
    assert len(result.node_label) == len(result.direction_of_node) == n_nodes
    assert all(0 <= node < n_nodes for node in result.node_of_frame)
    assert all(0 <= frame < n_frames for frame in result.meaning_of_frame)
    assert all(-1 <= call <= frame for frame, call in enumerate(result.backward_of_frame))


def test_a_launch_without_a_thread_is_in_no_range():
    ranges = ranges_of([Interval(0, 9)], [(0, -1)])
    result = attribute(trace_of(ranges, [Interval(1, 2, thread=-1)], [(0, -1)]))
    assert result.frame_of_kernel.tolist() == [-1]


def test_a_trace_of_nothing_has_no_frames():
    result = attribute(trace_of(ranges_of([], []), [], []))
    assert len(result.frame_parent) == len(result.node_parent) == len(result.frame_of_kernel) == 0
    alone = attribute(trace_of(ranges_of([], []), [], [(-1, -1)]))
    assert alone.frame_of_kernel.tolist() == [-1]
