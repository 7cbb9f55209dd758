"""What holds up pieces of a chain: launches, and waits of the host."""

import numpy as np
import pytest

from fastprof._core._held import Launched
from fastprof.analysis.host.states import State
from fastprof.model.trace import NO_TIME
from fastprof.ranks.run.host import ChainPieces, host_times, latency
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


def launched(launch, start, end, done=None, begin=0):
    """Work of one thread, launched by a call each."""
    columns = [np.array(column, np.int64) for column in (launch, start, end)]
    rows = np.arange(len(columns[0]), dtype=np.int32)
    none = np.empty(0, np.int64)
    done = columns[0] if done is None else done
    return Launched(
        (*columns[1:], rows), begin, (none, none, rows[:0]), (columns[0], rows, rows * 0, done)
    )


def pieces_of(launches, time, idle, of_host):
    """Pieces that wait for no call."""
    time = np.array(time, np.int64)
    sums = launches.sums(time)
    return ChainPieces(time, time * 0, sums, np.array(idle, np.int64), np.array(of_host, np.int64))


def held(work, pieces, states=None):
    """work : (launch, start, end); pieces : (end, idle, of_host)"""
    launches = launched(*zip(*work, strict=True))
    states = Waits() if states is None else states
    return host_times(launches, pieces_of(launches, *zip(*pieces, strict=True)), states, LATENCY)


def test_a_piece_that_waits_for_its_launch_has_no_slack():
    (launch, slack, rest), syncs = held([(10, 14, 114)], [(114, 0, 14)])
    assert (launch.tolist(), slack.tolist(), rest.tolist()) == ([10], [0], [100])
    assert not len(syncs)


def test_queued_work_could_end_sooner():
    (launch, slack, _), _ = held([(10, 14, 114), (20, 114, 164)], [(114, 0, 14), (164, 0, 0)])
    assert launch.tolist() == [10, 20]
    assert slack.tolist() == [0, 164 - (20 + LATENCY + 50)]


def test_the_launch_that_holds_up_most_counts_not_the_last_one():
    # The second launch is late enough to hold up the piece, the third waits behind the second.
    work = [(0, 100, 200), (150, 200, 300), (160, 300, 400)]
    (launch, slack, rest), _ = held(work, [(400, 0, 0)])
    assert launch.tolist() == [160]
    assert slack.tolist() == [400 - (150 + LATENCY + 200)]
    assert rest.tolist() == [200]


def test_idle_time_that_is_not_of_the_host_is_in_the_rest():
    (_, slack, rest), _ = held([(0, 50, 150)], [(170, 20, 0)])
    assert rest.tolist() == [120]
    assert slack.tolist() == [170 - LATENCY - 120]


def test_a_piece_without_a_launch_is_held_up_by_none():
    (launch, slack, _), _ = held([(NO_TIME, 0, 50), (5, 60, 70)], [(50, 0, 0), (70, 10, 0)])
    assert launch.tolist() == [NO_TIME, 5]
    assert slack[0] == -1


def test_idle_time_of_the_host_before_a_step_ends_holds_it_up():
    (launch, slack, _), _ = held([(90, 94, 104)], [(50, 0, 50), (104, 0, 44)])
    assert launch.tolist() == [50, 90]
    assert slack.tolist() == [0, 0]


def test_launches_never_go_back():
    (launch, *_), _ = held([(80, 100, 110), (30, 110, 120)], [(110, 0, 0), (120, 0, 0)])
    assert launch.tolist() == [80, 80]


def test_waits_of_the_host_are_between_launches():
    work = [(10, 14, 100), (150, 154, 164), (155, 164, 174)]
    _, syncs = held(work, [(100, 0, 14), (164, 0, 54), (174, 0, 0)], Waits((30, 120)))
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
    end = start + 100
    of = launched(launch, start, end, done)
    _, syncs = host_times(of, pieces_of(of, end, number * 0, number * 0), Waits(), LATENCY)
    assert syncs.event.tolist() == ([n - 1] if is_full else [])
    assert syncs.ns.tolist() == ([40_000] if is_full else [])
    assert syncs.after.tolist() == ([10] if is_full else [])


def test_latency_is_the_median_of_work_that_begins_soon_after_its_launch():
    start, launch = np.array([10, 1_000, 90_000]), np.array([5, 994, 10])
    assert latency(start, launch) == 5
    assert latency(start, np.full(3, NO_TIME)) == 0


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
