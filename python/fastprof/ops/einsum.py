"""Einstein sums and tensor contractions to matrix products."""

from __future__ import annotations
