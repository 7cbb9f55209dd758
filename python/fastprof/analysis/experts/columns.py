"""The headings and help of `experts`. Imports no numpy, for `--help` and docs/reports.md."""

from __future__ import annotations

from typing import Final

from fastprof.model.heading import Heading

EXPERTS, RANKS = "experts", "ranks"


def _time(key: str, header: str, about: str, rank: int = 0) -> Heading:
    return Heading(key, header, "ns", about, same_unit="gpu_ns", rank=rank)


COLUMNS: Final = (
    Heading("layer", "layer", "", "layer of the experts", keeps_end=True),
    Heading("calls", "count", "", "calls of operators of experts, or of the first product"),
    Heading("tokens", "tokens", "", "mean tokens of a call", decimals=1, rank=1),
    Heading("experts", "experts", "", "experts, of all ranks if scores tell them", rank=1),
    Heading("chosen", "of each", "", "experts that a token goes through", rank=2),
    Heading(
        "rows",
        "rows",
        "",
        "mean rows of an expert: tokens times experts of each, by experts; of an all-to-all, mean "
        "rows that a rank sends to each rank",
        decimals=1,
    ),
    Heading("most_rows", "largest", "", "rows of the largest share, where recorded", decimals=1),
    Heading(
        "imbalance", "imbalance", "", "largest share of rows by the mean, mean of steps", decimals=2
    ),
    Heading("worst", "worst", "", "the largest imbalance of a step", decimals=2, rank=2),
    Heading("among", "among", "", "what the shares are of: experts, or ranks (all-to-all)", rank=1),
    Heading(
        "load",
        "load",
        "",
        "rows that this rank receives by those that it sends: its share of the work by the mean if "
        "all ranks send as many",
        decimals=2,
    ),
    Heading("gpu_ns", "gpu", "ns", "GPU time of experts"),
    _time("products_ns", "products", "products of experts"),
    _time("routing_ns", "routing", "choosing experts, ordering and summing rows", 1),
    _time("exchange_ns", "exchange", "all-to-all between ranks, with waits for other ranks"),
    _time("other_ns", "other", "other work inside operators of experts", 2),
    _time(
        "lost_ns",
        "lost",
        "time of products beyond that of an even share, if load is above 1; unknown without a load",
    ),
    Heading("exact", "exact", "", "1 if operators or layers tell, 0 if kernels alone", rank=2),
)  # fmt: skip

DESCRIPTION: Final = """\
Mixtures of experts, a row per layer: tokens, experts, GPU time of products, routing
and exchange, and how even the rows are, as far as the capture records it:

- rows of each expert, where experts are layers by themselves (experts.3)
- rows sent to and received from each rank by all-to-all (split sizes, which
  torch.profiler records)

Grouped products and fused layers take the rows of all experts at once; how many go
to each is a value of a tensor, which no capture has. Exchanges that are no collective
of torch (DeepEP) record no sizes either. The imbalance is the largest share by the
mean: 1 is even. The time lost is that of a rank that gets more than the mean; where
others hold this rank up, fastprof ranks names the rank and layer.

  fastprof experts engine.json.gz --sort imbalance
"""
