"""Duplicates: a set labelled by hand, and how well triage tells which entries are about the same thing."""
