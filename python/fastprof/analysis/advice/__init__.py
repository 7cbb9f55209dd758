"""Findings: what makes a step longer than it has to be, and what to change."""
