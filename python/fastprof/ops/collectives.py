"""Collective communication to bytes."""

from __future__ import annotations
