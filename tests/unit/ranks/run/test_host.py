"""What holds up pieces of a chain: launches, and waits of the host."""

import numpy as np
import pytest

from fastprof.analysis.host.states import State
from fastprof.model.trace import NO_TIME
from fastprof.ranks.run.host import Launches, Pieces, host_times, latency
from support.kineto_files import KinetoFile
from unit.ranks.run.test_timeline import collective, ranks_of

LATENCY = 4


class Waits:
    """States of one thread: in SYNC within some intervals."""

    def __init__(self, *intervals):
        self._intervals = intervals
        self.events = {State.SYNC: self, State.BLOCKING_COPY: self}

    def covered(self, thread, begin, end):
        result = np.zeros((len(thread), len(State)), np.int64)
        for low, high in self._intervals:
            inside = np.minimum(end, high) - np.maximum(begin, low)
            result[:, State.SYNC] += np.where(thread == 0, np.maximum(inside, 0), 0)
        return result

    def last(self, thread, time):
        ends = np.full(len(thread), NO_TIME)
        for low, high in self._intervals:
            ends[(low < time) & (thread == 0)] = high
        return np.zeros(len(thread), np.int64), ends


def held(launches, pieces, states=None):
    """launches : (piece, launch, start, rest); pieces : (end, work, idle, of_host)"""
    columns = np.array(launches, np.int64).reshape(-1, 4).T
    thread = np.zeros(len(launches), np.int32)
    done = np.full(len(launches), NO_TIME)
    of_pieces = Pieces(*np.array(pieces, np.int64).T)
    states = Waits() if states is None else states
    return host_times(Launches(*columns, thread, done), of_pieces, states, LATENCY)


def test_a_piece_that_waits_for_its_launch_has_no_slack():
    (launch, slack, rest), syncs = held([(0, 10, 14, 100)], [(114, 100, 0, 14)])
    assert (launch.tolist(), slack.tolist(), rest.tolist()) == ([10], [0], [100])
    assert not len(syncs)


def test_queued_work_could_end_sooner():
    (launch, slack, _), _ = held(
        [(0, 10, 14, 100), (1, 20, 114, 50)], [(114, 100, 0, 14), (164, 50, 0, 0)]
    )
    assert launch.tolist() == [10, 20]
    assert slack.tolist() == [0, 164 - (20 + LATENCY + 50)]


def test_the_launch_that_holds_up_most_counts_not_the_last_one():
    # The second launch is late enough to hold up the piece, the third waits behind the second.
    launches = [(0, 0, 100, 300), (0, 150, 200, 200), (0, 160, 300, 100)]
    (launch, slack, rest), _ = held(launches, [(400, 300, 0, 0)])
    assert launch.tolist() == [160]
    assert slack.tolist() == [400 - (150 + LATENCY + 200)]
    assert rest.tolist() == [200]


def test_idle_time_that_is_not_of_the_host_is_in_the_rest():
    (_, slack, rest), _ = held([(0, 0, 50, 100)], [(170, 100, 20, 0)])
    assert rest.tolist() == [120]
    assert slack.tolist() == [170 - LATENCY - 120]


def test_a_piece_without_a_launch_is_held_up_by_none():
    (launch, slack, _), _ = held([(1, 5, 60, 10)], [(50, 50, 0, 0), (70, 10, 0, 0)])
    assert launch.tolist() == [NO_TIME, 5]
    assert slack[0] == -1


def test_idle_time_of_the_host_before_a_step_ends_holds_it_up():
    (launch, slack, _), _ = held([(1, 90, 94, 10)], [(50, 0, 0, 50), (104, 10, 0, 44)])
    assert launch.tolist() == [50, 90]
    assert slack.tolist() == [0, 0]


def test_launches_never_go_back():
    (launch, *_), _ = held([(0, 80, 100, 10), (1, 30, 110, 10)], [(110, 10, 0, 0), (120, 10, 0, 0)])
    assert launch.tolist() == [80, 80]


def test_waits_of_the_host_are_between_launches():
    launches = [(0, 10, 14, 86), (1, 150, 154, 10), (2, 155, 164, 10)]
    pieces = [(100, 86, 0, 14), (164, 10, 0, 54), (174, 10, 0, 0)]
    _, syncs = held(launches, pieces, Waits((30, 120)))
    assert syncs.event.tolist() == [1]
    assert (syncs.ns.tolist(), syncs.after.tolist()) == ([90], [30])


@pytest.mark.parametrize("is_full", [True, False])
def test_launches_into_a_full_queue_wait_for_the_gpu(is_full):
    n = 1100
    number = np.arange(n)
    launch, start = number * 10, 1_000_000 + number * 100
    done = launch + 5
    # The last but one call takes 40 us; of an empty queue, as its own work.
    done[-2], launch[-1] = launch[-2] + 40_000, launch[-2] + 40_010
    if not is_full:
        start = launch + LATENCY
    of = Launches(
        number.astype(np.int64), launch, start, np.full(n, 100), np.zeros(n, np.int32), done
    )
    end = start + 100
    pieces = Pieces(end, np.full(n, 100), np.zeros(n, np.int64), np.zeros(n, np.int64))
    _, syncs = host_times(of, pieces, Waits(), LATENCY)
    assert syncs.event.tolist() == ([n - 1] if is_full else [])
    assert syncs.ns.tolist() == ([40_000] if is_full else [])
    assert syncs.after.tolist() == ([10] if is_full else [])


def test_latency_is_that_of_work_on_an_idle_gpu():
    start, launch = np.array([10, 100, 1_000, 90_000]), np.array([5, 0, 994, 10])
    before = np.array([0, 100, 200, 1_100])
    assert latency(start, launch, before) == 5  # of 5 and 6: work behind other work, and late, not
    assert latency(start, np.full(4, NO_TIME), before) == 0


def test_work_launched_as_a_call_ends_does_not_wait_for_it(tmp_path):
    """The call ends while the launch of the next kernel takes effect."""
    trace = KinetoFile(distributedInfo={"backend": "nccl", "rank": 0, "world_size": 2})
    for i in range(3):  # what is usual: 4 us from launch to begin
        trace.launch(20_000 * i, 20_000 * i + 1, corr=50 + i)
        trace.kernel(20_000 * i + 4, 20_000 * i + 10_000, corr=50 + i)
    collective(trace, 60_000, 70_000, 1)
    for i, launch in enumerate((69_999, 65_000)):
        begin = 70_003 if not i else 90_000
        if i:
            collective(trace, 80_000, 90_000, 2)
            launch = 85_000
        trace.launch(launch, launch + 1, corr=60 + i).kernel(begin, begin + 5_000, corr=60 + i)
    (record,) = ranks_of(trace.write(tmp_path / "t.json"))
    waited = record.chain.call[record.chain.blocked > 0]
    assert waited.tolist() == [1]
