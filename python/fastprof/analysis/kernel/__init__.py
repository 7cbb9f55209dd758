"""One kernel or copy explained: launch, operator, cost, neighbours, and what it waited for."""
