"""The structured log of torch.compile: the files that torch writes to the folder TORCH_TRACE.

A record is a line `V1128 07:44:33.550000 26937 torch/_dynamo/utils.py:2350] {"artifact": ...}`; the
lines of its text follow, each after a tab. `frame_id` and `frame_compile_id` are the compile id
`0/1`. Source: torch/_logging/_internal.py (`trace_structured`, `TorchLogsFormatter`), torch 2.3 to
2.13.

The records of a compiled graph precede that of its key in Inductor's cache, hit or miss.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.model.compiled import Compiled, CompiledGraph, GraphBreak, Recompilation
from fastprof.readers.inductor.artefacts import GeneratedParts, graph_of
from fastprof.readers.inductor.graph_text import stack_of

_RECORD: Final = regex(r"[VDIWEC]\d{4,8} [\d:.]+ \d+ \S+\] (?:\[[^{]*\] )?(\{.*)")
_PARTS: Final = {
    "inductor_post_grad_graph": "graph",
    "inductor_output_code": "code",
    "inductor_provenance_tracking_node_mappings": "mappings",
    "inductor_triton_kernel_to_post_grad_nodes": "mappings",
    "inductor_provenance_tracking_kernel_stack_traces": "stacks",
}
_CODE, _CALLS = "inductor_output_code", b"[Provenance debug handles]"
_PROGRAMS: Final = ("dynamo_output_graph", "before_pre_grad_graph", "inductor_pre_grad_graph")
_KEY: Final = "fx_graph_cache_"
_RECOMPILED, _BROKEN, _SYMBOL = "recompile_reasons", "dynamo_graph_break_reason", "create_symbol"
_LARGEST: Final = 1 << 26  # characters of a text
_MOST_REASON: Final = 300


class _Record(NamedTuple):
    """A record of interest: its kind, or the name of an artefact; compile id; fields; text."""

    name: str
    compile_id: str
    fields: dict[str, Any]
    text: str


def is_structured_log(name: str) -> bool:
    """Whether a file has the name of a structured log."""
    return re.fullmatch(r"dedicated_log_torch_trace_.*\.log", name) is not None


def read(path: Path) -> Compiled:
    """Read a structured log; damaged records are omitted.

    Raises
    ------
    OSError
        It cannot be read.
    """
    reading = _Reading(path.name)
    for record in _records(path):
        reading.add(record)
    return reading.result()


class _Reading:
    """Collects the parts of graphs until their key is known."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: dict[str, GeneratedParts] = {}
        self._programs: dict[str, str] = {}
        self._symbols: dict[str, dict[str, int]] = {}
        self._graphs: list[CompiledGraph] = []
        self._recompilations: dict[str, tuple[str, ...]] = {}
        self._breaks: list[GraphBreak] = []

    def add(self, record: _Record) -> None:
        """Add a record."""
        name, compile_id = record.name, record.compile_id
        if name in _PARTS:
            parts, part = self._parts(compile_id), _PARTS[name]
            if part == "graph" and parts.has_kernels:  # of the next graph; no key was recorded
                self._close(compile_id, "")
                parts = self._parts(compile_id)
            setattr(parts, part, record.text)
        elif name in _PROGRAMS:
            self._programs.setdefault(compile_id, record.text)
        elif name.startswith(_KEY):
            match = re.search(r'"key": "(\w+)"', record.text)
            self._close(compile_id, match[1] if match is not None else "")
        elif name == _RECOMPILED:
            self._recompilations[compile_id] = _reasons(record.text)
        elif name == _BROKEN:
            self._breaks.append(_graph_break(compile_id, record.text))
        elif name == _SYMBOL:
            symbol, value = record.fields.get("symbol"), str(record.fields.get("val"))
            if isinstance(symbol, str) and value.isdecimal():
                self._symbols.setdefault(compile_id, {})[symbol] = int(value)

    def result(self) -> Compiled:
        """What was read."""
        for compile_id in list(self._open):
            self._close(compile_id, "")
        return Compiled(
            tuple(self._graphs),
            tuple(Recompilation(*item) for item in self._recompilations.items()),
            tuple(self._breaks),
        )

    def _parts(self, compile_id: str) -> GeneratedParts:
        return self._open.setdefault(compile_id, GeneratedParts(f"{self._name}: {compile_id}"))

    def _close(self, compile_id: str, key: str) -> None:
        parts = self._open.pop(compile_id, None)
        if parts is not None:
            parts.program = self._programs.get(compile_id, "")
            parts.symbols = self._symbols.get(compile_id, {})
            graph = graph_of(parts, key)
            if graph is not None:
                self._graphs.append(graph)


def _records(path: Path) -> Iterator[_Record]:
    """The records of interest."""
    header: tuple[str, str, dict[str, Any]] | None = None
    lines: list[str] = []
    size = 0
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            if line.startswith("\t"):
                size += len(line)
                if header is not None and size <= _LARGEST:
                    lines.append(line[1:])
                continue
            if header is not None:
                yield _Record(*header, "".join(lines))
            header, lines, size = _header(line), [], 0
    if header is not None:
        yield _Record(*header, "".join(lines))


def kept_lines(path: Path) -> Iterator[bytes]:
    """The lines of the records that `read` uses, and of generated code only those of calls.

    Raises
    ------
    OSError
        It cannot be read.
    """
    name = ""
    with path.open("rb") as file:
        for line in file:
            if not line.startswith(b"\t"):
                header = _header(line.decode("utf-8", "replace"))
                name = "" if header is None else header[0]
            elif name == _CODE and _CALLS not in line:
                continue
            elif name.startswith(_KEY):
                match = re.search(rb'"key": "\w+"', line)
                line = b"" if match is None else b"\t{%s}\n" % match[0]
            if name:
                yield line


def _header(line: str) -> tuple[str, str, dict[str, Any]] | None:
    """Name, compile id and fields of a record; None if it is not of interest."""
    match = _RECORD.match(line)
    if match is None:
        return None
    try:
        values = json.loads(match[1])
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    compile_id = f"{values.get('frame_id')}/{values.get('frame_compile_id')}"
    graph = values.get("compiled_autograd_id")
    compile_id = compile_id if graph is None else f"!{graph}/{compile_id}"
    for kind, fields in values.items():
        told = fields if isinstance(fields, dict) else {}
        name = told.get("name") if kind == "artifact" else kind
        if isinstance(name, str) and (name in _OF_INTEREST or name.startswith(_KEY)):
            return name, compile_id, told
    return None


_OF_INTEREST: Final = frozenset({*_PARTS, *_PROGRAMS, _RECOMPILED, _BROKEN, _SYMBOL})


def _reasons(text: str) -> tuple[str, ...]:
    """The guards that failed: a JSON list, or a text per line."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = text.split("\n")
    members = values if isinstance(values, list) else [values]
    return tuple(str(member)[:_MOST_REASON] for member in members if str(member).strip())


def _graph_break(compile_id: str, text: str) -> GraphBreak:
    """A graph break: a headline, its reason after `Reason: `, the stack, an explanation."""
    reason = next((line for line in text.split("\n") if "Reason:" in line), "")
    _, _, told = reason.partition("Reason:")
    explained = re.search(r"^\s*Explanation: (.+)$", text, re.MULTILINE)
    told = told.strip() or (explained[1] if explained is not None else "")
    stack = stack_of(text.partition("Traceback (most recent call last)")[0])
    return GraphBreak(compile_id, told[:_MOST_REASON], stack[-1] if stack else "")
