"""Operating system helpers: threads, signals, memory limits, files, optional dependencies."""
