"""Operators that move data to bytes."""

from __future__ import annotations
