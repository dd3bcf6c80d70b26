"""Persona files: what a specialist may do, when, and its prompt."""
