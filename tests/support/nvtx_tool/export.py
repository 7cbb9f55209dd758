"""Convert logs of NVTX calls to an SQLite export as of Nsight Systems.

Unlike in a real export, a domain has the same number in all processes.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from support.exports import Export, global_tid
from support.nvtx_tool.logs import Call, Kind, Log

SCHEMA = "2025"


def write(logs: Iterable[Log], path: Path) -> tuple[Path, list[Call]]:
    """Write the export of a run.

    Returns
    -------
    Path
        The same path.
    list of Call
        The pops and ends that match no range; an export does not contain them.
    """
    export = Export()
    stray: list[Call] = []
    domains: dict[tuple[int, int], int] = {}
    for log in logs:
        stray += _Process(export, log, domains).add()
    export.write(path, SCHEMA, with_tables=["NVTX_EVENTS"])
    return path, stray


class _Process:
    """Adds the events of one process to an export."""

    def __init__(self, export: Export, log: Log, domains: dict[tuple[int, int], int]) -> None:
        self._export = export
        self._log = log
        self._domains = domains  # (id() of its maker, number there) -> number here

    def add(self) -> list[Call]:
        """Add the events; return the pops and ends that match no range."""
        pid, program = self._log.pid, self._log.program
        self._export.row("PROCESSES", globalPid=global_tid(pid, 0), pid=pid, name=program)
        for text in self._log.strings.values():
            self._export.string(text)
        ends, stray = self._ends()
        for call in self._log.calls:
            if call.kind in (Kind.PUSH, Kind.START):
                self._add_range(call, ends.get(id(call)))
            elif call.kind in _OTHERS:
                self._add_other(call)
        return stray

    def _ends(self) -> tuple[dict[int, Call], list[Call]]:
        """The end of each push and start, by the id() of the call; and unmatched ends."""
        open_ranges: dict[Any, list[Call]] = {}
        ends, stray = {}, []
        for call in self._log.calls:
            # A pop ends the last push of its thread and domain, an end the range with its number.
            pushed = call.kind in (Kind.PUSH, Kind.POP)
            key = (call.tid, call.domain) if pushed else call.number
            if call.kind in (Kind.PUSH, Kind.START):
                open_ranges.setdefault(key, []).append(call)
            elif call.kind in (Kind.POP, Kind.END):
                if open_ranges.get(key):
                    ends[id(open_ranges[key].pop())] = call
                else:
                    stray.append(call)
        return ends, stray

    def _add_range(self, call: Call, ended: Call | None) -> None:
        end = ended.time if ended else None
        if call.kind == Kind.PUSH:
            self._export.push_pop(call.time, end, tid=call.tid, **self._columns(call))
        else:
            columns = {**self._columns(call), "rangeId": call.number}
            end_tid = ended.tid if ended else None
            self._export.start_end(call.time, end, tid=call.tid, end_tid=end_tid, **columns)

    def _add_other(self, call: Call) -> None:
        columns = {**self._columns(call), "event": _OTHERS[call.kind]}
        tid = call.number if call.kind == Kind.THREAD else call.tid
        self._export.mark(call.time, tid=tid, **columns)
        if call.kind == Kind.THREAD:
            name, thread = self._export.string(call.text or ""), global_tid(self._log.pid, tid)
            self._export.row("ThreadNames", nameId=name, priority=0, globalTid=thread)

    def _columns(self, call: Call) -> dict[str, Any]:
        registered = call.string != 0
        return {
            "text": self._log.string(call.string) if registered else call.text,
            "registered": registered,
            "domain": self._domain(call.domain),
            "pid": self._log.pid,
            "category": call.category or None,
            "color": call.color,
            **call.payload,
        }

    def _domain(self, number: int) -> int:
        maker = self._log.maker(number)
        return self._domains.setdefault((id(maker), number), len(self._domains) + 1) if maker else 0


_OTHERS = {
    Kind.MARK: "NvtxMark",
    Kind.DOMAIN: "NvtxDomainCreate",
    Kind.DOMAIN_END: "NvtxDomainDestroy",
    Kind.CATEGORY: "NvtxCategory",
    Kind.THREAD: "NvtxThread",
}
