"""Perfetto traces: protobuf packets of perfetto's TracePacket schema."""

from __future__ import annotations

from typing import Any, BinaryIO

from fastprof.analysis.selection import Where

__all__ = ["write"]


def write(
    profile: Any, file: BinaryIO, steps: str | None = None, where: Where | None = None
) -> None:
    """Write a profile as a Perfetto trace."""
    file.write(b"")
