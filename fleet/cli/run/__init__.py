"""Runs: fire one, follow it, list, show and replay."""
