"""Batch, layer, group, instance and RMS norm to FLOPs and bytes."""

from __future__ import annotations
