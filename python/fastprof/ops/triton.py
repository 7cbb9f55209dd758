"""Kernels that torch.compile has fused, to bytes."""

from __future__ import annotations
