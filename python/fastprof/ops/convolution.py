"""Convolutions, transposed ones too, to FLOPs and bytes."""

from __future__ import annotations
