"""`memory`: allocations of a trace, and memory snapshots of torch."""
