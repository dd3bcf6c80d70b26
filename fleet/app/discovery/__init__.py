"""Finds out what there is at an address."""
