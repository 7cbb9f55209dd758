"""`lines`: GPU time by source line or function."""
