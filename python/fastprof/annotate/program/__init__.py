"""What `fastprof run` does inside the user's program: find its steps, and record some of them."""
