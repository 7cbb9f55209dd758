"""`overlap`: communication hidden behind compute, and exposed."""
