"""Findings and items: list, show, decide, verify."""
