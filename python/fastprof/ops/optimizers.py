"""Optimizer steps and foreach operators to FLOPs and bytes."""

from __future__ import annotations
