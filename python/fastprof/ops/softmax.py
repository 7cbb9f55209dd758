"""Softmax and losses to FLOPs and bytes."""

from __future__ import annotations
