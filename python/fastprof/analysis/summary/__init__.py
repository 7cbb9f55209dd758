"""`summary`: time and work by any keys."""
