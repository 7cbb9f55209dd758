"""The tables of `nsys stats`, with its column names and units, from any trace."""
