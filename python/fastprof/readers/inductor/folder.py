"""A folder with artefacts of torch.compile.

Files of any depth: structured logs (TORCH_TRACE), folders of Inductor's debug mode
(TORCH_COMPILE_DEBUG=1, `torch._inductor.config.trace.enabled`: `model__0_forward_1.0` with
`output_code.py` and `fx_graph_transformed.py`), and `kernel_information.json`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fastprof.errors import BadInputError
from fastprof.model.compiled import Compiled, CompiledGraph, GraphBreak, Recompilation
from fastprof.readers.inductor import structured_log
from fastprof.readers.inductor.artefacts import GeneratedParts, graph_of

_FILES: Final = {
    "fx_graph_transformed.py": "graph",
    "output_code.py": "code",
    "inductor_provenance_tracking_node_mappings.json": "mappings",
    "inductor_triton_kernel_to_post_grad_nodes.json": "mappings",
    "inductor_provenance_tracking_kernel_stack_traces.json": "stacks",
    "kernel_information.json": "information",
}
_LARGEST: Final = 1 << 26  # bytes of a file
_MOST_FILES: Final = 100_000


def read(path: str | os.PathLike[str]) -> Compiled:
    """Read the artefacts in a folder, or a structured log.

    Raises
    ------
    BadInputError
        It cannot be read, or has no artefacts; the message says how to write them.
    """
    name = os.fsdecode(path)
    graphs: list[CompiledGraph] = []
    recompilations: list[Recompilation] = []
    breaks: list[GraphBreak] = []
    result = False
    try:
        for folder, files in _folders(Path(name)):
            parts = GeneratedParts(str(folder))
            for file in files:
                if structured_log.is_structured_log(file):
                    log = structured_log.read(folder / file)
                    graphs += log.graphs
                    recompilations += log.recompilations
                    breaks += log.breaks
                    result = True
                elif file in _FILES:
                    setattr(parts, _FILES[file], _text(folder / file))
                    result = True
            graph = graph_of(parts)
            if graph is not None:
                graphs.append(graph)
    except OSError as error:
        raise BadInputError(f"{name}: cannot be read: {error.strerror}") from error
    if not result:
        raise BadInputError(
            f"{name}: expected artefacts of torch.compile (a structured log, or output_code.py of "
            "its debug mode), found none; run the program with INDUCTOR_PROVENANCE=1 "
            "TORCH_TRACE=DIR"
        )
    return Compiled(tuple(graphs), tuple(recompilations), tuple(breaks))


def _folders(path: Path) -> Iterator[tuple[Path, list[str]]]:
    """The folders below a path with the names of their files, in order; of a file, its own."""
    if path.is_file():
        yield path.parent, [path.name]
        return
    if not path.exists():
        raise FileNotFoundError(2, "no such file or folder")
    count = 0
    for folder, folders, files in os.walk(path):
        folders.sort()
        count += len(files)
        if count > _MOST_FILES:
            return
        yield Path(folder), sorted(files)


def _text(path: Path) -> str:
    if not path.is_file() or path.stat().st_size > _LARGEST:  # a pipe would block
        return ""
    return path.read_bytes().decode("utf-8", "replace")
