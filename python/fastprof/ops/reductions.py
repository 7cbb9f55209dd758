"""Reductions and scans to FLOPs and bytes."""

from __future__ import annotations
