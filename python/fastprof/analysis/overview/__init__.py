"""`overview`: the first look at a trace, in one screen."""
