"""Scaled dot-product attention to FLOPs and bytes."""

from __future__ import annotations
