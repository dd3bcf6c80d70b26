"""Personas: list, check, scaffold, try."""
