"""`roofline`: GPU time against the time at the GPU's peak rates."""
