"""A tool that records NVTX: a library that programs load, and what makes its logs an export."""
