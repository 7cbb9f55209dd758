"""fastprof within other libraries: a module for each, which needs that library."""
