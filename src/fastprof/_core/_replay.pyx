"""The graph of what host calls and GPU work wait for, and its replay."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core._arrays cimport require_equal
from fastprof._core.fp_replay cimport (
    FP_REPLAY_SLOTS, fp_replay_graph, fp_replay_part, fp_replay_path, fp_replay_query,
    fp_replay_run, fp_replay_slack,
)
from fastprof._core.fp_replay_build cimport (
    fp_replay_build, fp_replay_built, fp_replay_nodes, fp_replay_trace,
)
from fastprof._core.fp_status cimport fp_status
from fastprof._core._status cimport check


def build(const int64_t[::1] call_start, const int64_t[::1] call_end,
          const int32_t[::1] call_thread, const int32_t[::1] call_lane,
          const uint8_t[::1] call_kind, const int32_t[::1] process_of_thread,
          const int64_t[::1] start, const int64_t[::1] duration, const int32_t[::1] lane,
          const int32_t[::1] call, const int32_t[::1] name,
          const int32_t[::1] process_of_lane, const int32_t[::1] gpu_of_lane, int32_t n_names,
          int32_t n_processes, int64_t begin):
    """Build the graph of a trace; see csrc/replay/fp_replay_build.h.

    Parameters
    ----------
    call_start, call_end : int64 [calls], ns
        Starts ascend.
    call_thread, call_lane : int32 [calls]
        The lane that the call waits for, -1: any.
    call_kind : uint8 [calls]
        0 launches, 1 waits, 2 waits for an event, 3 copies, 4 allocates, 5 makes a stream wait,
        6 waits for work that ends as it does.
    process_of_thread : int32 [threads]
    start, duration : int64 [work], ns
        Starts ascend.
    lane, call, name : int32 [work]
        The launch, -1: not recorded; the name below `n_names`.
    process_of_lane, gpu_of_lane : int32 [lanes]
    n_names, n_processes : int
    begin : int, ns
        When the host begins; the first call or work if that is earlier.

    Returns
    -------
    dict of str to array, [nodes] each
        source, lag (int32 [3, nodes]), before, duration, kind, slot, row; call_node [calls] and
        work_node [work].
    dict of str to int
        origin, unexplained, n_cut, n_unplaced
    """
    cdef int64_t n_calls = call_start.shape[0], n_work = start.shape[0]
    cdef int64_t most = 2 * n_calls + n_work + 1
    cdef int32_t[:, ::1] source = np.empty((FP_REPLAY_SLOTS, most), np.int32)
    cdef int32_t[:, ::1] lag = np.empty((FP_REPLAY_SLOTS, most), np.int32)
    cdef int64_t[:, ::1] times = np.empty((2, most), np.int64)
    cdef uint8_t[:, ::1] kinds = np.empty((2, most), np.uint8)
    cdef int32_t[::1] row = np.empty(most, np.int32)
    cdef int32_t[::1] call_node = np.empty(n_calls + 1, np.int32)
    cdef int32_t[::1] work_node = np.empty(n_work + 1, np.int32)
    cdef fp_replay_trace trace
    cdef fp_replay_nodes nodes
    cdef fp_replay_built built
    cdef fp_status status
    require_equal((n_calls, call_end.shape[0], call_thread.shape[0], call_lane.shape[0],
                   call_kind.shape[0]))
    require_equal((n_work, duration.shape[0], lane.shape[0], call.shape[0], name.shape[0]))
    require_equal((process_of_lane.shape[0], gpu_of_lane.shape[0]))
    trace.n_calls, trace.n_work = <int32_t>n_calls, <int32_t>n_work
    trace.n_threads, trace.n_lanes = (
        <int32_t>process_of_thread.shape[0], <int32_t>process_of_lane.shape[0])
    trace.n_processes, trace.n_names, trace.begin = n_processes, n_names, begin
    if n_calls:
        trace.call_start, trace.call_end = &call_start[0], &call_end[0]
        trace.call_thread, trace.call_lane = &call_thread[0], &call_lane[0]
        trace.call_kind = &call_kind[0]
    if trace.n_threads:
        trace.process_of_thread = &process_of_thread[0]
    if n_work:
        trace.start, trace.duration = &start[0], &duration[0]
        trace.lane, trace.call, trace.name = &lane[0], &call[0], &name[0]
    if trace.n_lanes:
        trace.process_of_lane, trace.gpu_of_lane = &process_of_lane[0], &gpu_of_lane[0]
    for s in range(FP_REPLAY_SLOTS):
        nodes.source[s], nodes.lag[s] = &source[s, 0], &lag[s, 0]
    nodes.before, nodes.duration = &times[0, 0], &times[1, 0]
    nodes.kind, nodes.slot, nodes.row = &kinds[0, 0], &kinds[1, 0], &row[0]
    nodes.call_node, nodes.work_node = &call_node[0], &work_node[0]
    with nogil:
        status = fp_replay_build(&trace, &nodes, &built)
    check(status, "graph of the replay")
    arrays = [
        np.asarray(source), np.asarray(lag), np.asarray(times), np.asarray(kinds), np.asarray(row),
        np.asarray(call_node), np.asarray(work_node)]
    return _columns(arrays, built.n_nodes, n_calls, n_work), {
        "origin": built.origin, "unexplained": built.unexplained, "n_cut": built.n_cut,
        "n_unplaced": built.n_unplaced}


def _columns(arrays, n, n_calls, n_work):
    """The columns of n nodes, calls and work by name."""
    source, lag, times, kinds, row, call_node, work_node = arrays
    return {
        "source": [each[:n] for each in source],
        "lag": [each[:n] for each in lag],
        "before": times[0, :n],
        "duration": times[1, :n],
        "kind": kinds[0, :n],
        "slot": kinds[1, :n],
        "row": row[:n],
        "call_node": call_node[:n_calls],
        "work_node": work_node[:n_work],
    }


cdef class Replay:
    """A graph with its times.

    Parameters
    ----------
    source, lag : three int32 [nodes] each
    before, duration : int64 [nodes], ns
    full : int64 [nodes], ns, optional
        The durations at which negative lags hold: they shrink with the durations.
    """
    cdef fp_replay_graph graph
    cdef tuple kept

    def __cinit__(self, source, lag, const int64_t[::1] before, const int64_t[::1] duration,
                  const int64_t[::1] full=None):
        cdef const int32_t[::1] column
        cdef int64_t n = before.shape[0]
        self.kept = tuple(source), tuple(lag), before, duration, full
        self.graph.n, self.graph.full = n, NULL
        if len(source) != FP_REPLAY_SLOTS or len(lag) != FP_REPLAY_SLOTS or (
                duration.shape[0] != n or (full is not None and full.shape[0] != n)
                or any(len(each) != n for each in (*source, *lag))):
            raise ValueError("lengths differ")
        if n == 0:
            return
        self.graph.before, self.graph.duration = &before[0], &duration[0]
        if full is not None:
            self.graph.full = &full[0]
        for s in range(FP_REPLAY_SLOTS):
            column = source[s]
            self.graph.source[s] = &column[0]
            column = lag[s]
            self.graph.lag[s] = &column[0]

    def run(self, const int32_t[::1] step, int32_t n_steps, const int32_t[::1] group=None,
            const double[::1] factor=None, const int32_t[::1] part=None,
            const int64_t[::1] begin=None, int64_t[::1] out=None):
        """Compute when each node starts and ends.

        Parameters
        ----------
        step : int32 [nodes]
            -1: none.
        n_steps : int
        group : int32 [nodes], optional
            Durations of its nodes are multiplied by the factor of their group; -1: by 1.
        factor : float64 [groups]
        part : int32 [nodes], optional
            Nodes of part -1 keep the times that `out` has.
        begin : int64 [parts], ns since the origin
            When the other nodes of a part are ready at the earliest.
        out : int64 [2 * nodes], optional
            For the times.

        Returns
        -------
        time : int64 [2 * nodes], ns since the origin: start, end of each node
        end : int64 [steps], the latest end of a node of each step; -2^63 without nodes
        """
        cdef fp_replay_query query
        cdef fp_status status
        cdef int64_t n = self.graph.n
        if step.shape[0] != n or (group is not None and (
                group.shape[0] != n or factor is None)) or (part is not None and (
                part.shape[0] != n or begin is None or out is None)):
            raise ValueError("lengths differ")
        cdef int64_t[::1] time = np.empty(2 * n + 1, np.int64) if out is None else out
        if time.shape[0] < 2 * n:
            raise ValueError("lengths differ")
        cdef int64_t[::1] end = np.empty(n_steps + 1, np.int64)
        query.group, query.factor, query.n_groups = NULL, NULL, 0
        query.part, query.begin, query.n_parts = NULL, NULL, 0
        if n and part is not None and begin.shape[0]:
            query.part, query.begin = &part[0], &begin[0]
            query.n_parts = <int32_t>begin.shape[0]
        query.step, query.n_steps = (&step[0] if n else NULL), n_steps
        if n and group is not None and factor.shape[0]:
            query.group, query.factor = &group[0], &factor[0]
            query.n_groups = <int32_t>factor.shape[0]
        with nogil:
            status = fp_replay_run(&self.graph, &query, &time[0], &end[0])
        check(status, "replay")
        return np.asarray(time)[:2 * n], np.asarray(end)[:n_steps]

    def path(self, const int64_t[::1] time, int32_t node, int64_t start):
        """Find the critical path to the end of a node, the last part first.

        Parameters
        ----------
        time : int64 [2 * nodes], as of `run` without scaling
        node : int
        start : int, ns since the origin

        Returns
        -------
        structured array [parts]
            own, before, lag (int64, ns), node, slot (int32).
        """
        if time.shape[0] != 2 * self.graph.n:
            raise ValueError("lengths differ")
        cdef int64_t n = 0
        cdef fp_status status
        if self.graph.n == 0:
            return np.empty(0, _PART)
        with nogil:
            status = fp_replay_path(&self.graph, &time[0], node, start, NULL, 0, &n)
        check(status, "critical path")
        found = np.empty(n + 1, _PART)
        cdef fp_replay_part[::1] parts = found
        with nogil:
            status = fp_replay_path(&self.graph, &time[0], node, start, &parts[0], n, &n)
        check(status, "critical path")
        return found[:n]

    def slack(self, const int64_t[::1] time, int64_t[::1] slack):
        """Compute how much later each node may start.

        Parameters
        ----------
        time : int64 [2 * nodes], as of `run` without scaling
        slack : int64 [nodes]
            In: how much later it may end by itself; 2^63 - 1: any. Changed in place.
        """
        if time.shape[0] != 2 * self.graph.n or slack.shape[0] != self.graph.n:
            raise ValueError("lengths differ")
        cdef fp_status status
        if self.graph.n:
            with nogil:
                status = fp_replay_slack(&self.graph, &time[0], &slack[0])
            check(status, "slack")


_PART = np.dtype([("own", np.int64), ("before", np.int64), ("lag", np.int64),
                  ("node", np.int32), ("slot", np.int32)])
