"""`copies`: memory copies and memsets."""
