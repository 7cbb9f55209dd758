"""Records NVTX: a library that programs load, and a converter of its logs to an export."""
