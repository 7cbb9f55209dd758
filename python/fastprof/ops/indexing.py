"""Gather, scatter and indexing to bytes."""

from __future__ import annotations
