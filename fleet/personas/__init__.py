"""Persona files: what a specialist may do, when, and how it looks."""
