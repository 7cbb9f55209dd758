"""Pooling and interpolation to FLOPs and bytes."""

from __future__ import annotations
