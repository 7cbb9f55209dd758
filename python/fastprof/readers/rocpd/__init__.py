"""Reader of rocpd databases, which AMD's rocprofv3 and rocprof-sys write."""
