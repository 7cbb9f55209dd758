"""The names and help of grouping keys. Imports no numpy, for `--help`."""

from __future__ import annotations

import re
from typing import Final

from fastprof._system.regex import regex
from fastprof.errors import ReportError
from fastprof.model.heading import Heading, unknown_name

DEPTH: Final = regex(r"layer-depth-(\d{1,4})\Z")

ANNOTATED: Final = regex(r"annotation:(.+)\Z", re.DOTALL)

KEY_NAMES: Final = {
    "op": "operator",
    "work": "operator, or kind and kernel where it is unknown",
    "mod": "module of the operator",
    "kernel": "short name of the kernel",
    "name": "full name of the kernel",
    "layer": "layer, with those around it; layer-depth-N: its first N parts",
    "line": "innermost source line of your own code",
    "library_line": "innermost source line outside torch",
    "function": "function of that line, where the trace names it",
    "file": "file of that line",
    "dir": "fprop, bprop or na",
    "shape": "shapes and types of the call (the column params)",
    "dtype": "types of the call's tensors",
    "kind": "kind of work: gemm, convolution, elementwise, communication, memcpy, ...",
    "phase": "forward, backward, recompute, optimizer, zero_grad, communication, copy or other",
    "stream": "stream",
    "device": "GPU number",
    "process": "process id",
    "rank": "rank of the process",
    "step": "step",
    "thread": "thread that launched it",
    "range": "your ranges around the call, numbers folded: step * for step 17",
    "compute_type": "type of the arithmetic: fp32, tf32, fp16, bf16, fp8, fp4, int8, fp64",
    "tc": "tensor cores: 1 used, 0 not used, - not applicable",
    "launch": "API call that launched it",
    "direction": "direction of a copy: HtoD, DtoH, DtoD, ...",
    "memory": "memory of a copy: pageable, pinned, managed, ...; device if there is no other",
    "size": "bytes of a copy or memset",
    "size_class": "class of that size: < 4 kB, 4-64 kB, 64 kB-1 MB, ...",
    "context": "CUDA context",
    "annotation": "annotation of a node of a CUDA graph; annotation:NAME: its field NAME",
    "collective": "collective of a communication kernel: all_reduce, all_gather, send_recv, ...",
    "process_group": "process group of a collective: name and description",
    "group_size": "ranks of that group",
    "message_bytes": "size of a collective, as NCCL's tests define it",
    "message_type": "type of a collective's elements",
    "stage": "stage of a serving engine: prefill, decode, mixed, draft, verify, sampling, "
    "tokenizer, KV transfer; ~ before one that only the kernel's name or earlier requests suggest",
    "batch": "what its iteration is of: 1 prefill of 888 tokens + 3 decode",
    "tokens": "tokens that its iteration computes",
    "requests": "requests of its iteration",
}
ALIASES: Final = {"class": "kind", "params": "shape", "module": "mod", "pid": "process"}

# Keys with a parameter.
_MADE: Final = regex(f"{DEPTH.pattern}|{ANNOTATED.pattern}", re.DOTALL)
_PATHS: Final = frozenset({"layer", "line", "library_line", "file", "range"})


def check_keys(by: tuple[str, ...]) -> None:
    """Check grouping keys.

    Raises
    ------
    ReportError
        A name is unknown or occurs twice; the message names the nearest.
    """
    for name in by:
        if name not in KEY_NAMES and name not in ALIASES and not _MADE.match(name):
            raise ReportError(unknown_name("key", name, [*KEY_NAMES, *ALIASES]))
    if not by or len(set(by)) < len(by):
        raise ReportError(f"expected keys to group by, each once; found {','.join(by)!r}")


def keys(text: str) -> tuple[str, ...]:
    """Keys separated by commas.

    Raises
    ------
    ReportError
        A name is unknown or occurs twice; the message names the nearest.
    """
    result = tuple(name.strip() for name in text.split(","))
    check_keys(result)
    return result


_CONDITION: Final = regex(r"([^=!]+)(!?=)(.*)\Z", re.DOTALL)


def condition(text: str) -> tuple[str, bool, str]:
    """KEY=PATTERN or KEY!=PATTERN: the key, whether it must match, the pattern.

    Raises
    ------
    ReportError
        The condition is malformed, or its key is unknown.
    """
    parts = _CONDITION.match(text)
    if parts is None:
        raise ReportError(f"expected KEY=PATTERN such as op=linear, found {text!r}")
    name = parts[1].strip()
    check_keys((name,))
    return name, parts[2] == "=", parts[3]


def heading_of(name: str) -> Heading:
    """The heading of a key's column."""
    known = ALIASES.get(name, name)
    other = "annotation" if ANNOTATED.match(name) else "layer"
    about = KEY_NAMES.get(known, KEY_NAMES[other])
    is_path = known in _PATHS or bool(DEPTH.match(name))
    return Heading(name, name, "", about, keeps_end=is_path, keeps_start=known == "shape")
