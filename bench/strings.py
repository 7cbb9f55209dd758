"""The string table of an export: each distinct text once; rows refer to its id."""

from __future__ import annotations

# The first strings of every Nsight Systems export.
FIRST_STRINGS = (
    "[Unknown]",
    "[kernel.kallsyms]",
    "[Max depth]",
    "[Broken backtraces]",
    "[Called from Java]",
    "GpuMetrics",
    "SocMetrics",
    "GenericCounters",
)


class StringTable:
    """Texts in order of their ids, which count from 0 without gaps."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {text: i for i, text in enumerate(FIRST_STRINGS)}

    def id_of(self, text: str) -> int:
        return self.ids.setdefault(text, len(self.ids))
