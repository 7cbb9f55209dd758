"""Sorting and selection to FLOPs and bytes."""

from __future__ import annotations
