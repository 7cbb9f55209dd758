"""`counters`: hardware counters of kernels."""
