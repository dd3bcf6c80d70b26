"""Finds out what there is at an address, and writes it down as a profile."""
