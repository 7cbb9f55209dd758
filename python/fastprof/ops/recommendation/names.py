"""Names of fbgemm's operators: `fbgemm::`, and `fb::` in releases up to 2022."""

from __future__ import annotations


def fbgemm(*signatures: str) -> tuple[str, ...]:
    """The signatures under both namespaces."""
    return tuple(f"{space}::{each}" for space in ("fbgemm", "fb") for each in signatures)
