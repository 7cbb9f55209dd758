"""Random numbers and dropout to FLOPs and bytes."""

from __future__ import annotations
