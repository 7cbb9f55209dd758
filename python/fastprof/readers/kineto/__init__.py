"""Reader of torch.profiler traces (.json, .json.gz)."""
