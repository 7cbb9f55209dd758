"""`Recording` to `Profile`: call paths, calls, costs and all report columns of every kernel."""
