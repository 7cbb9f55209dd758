"""Tests of pages in a browser. A package, so that its modules may have the names of other tests."""
