"""Jails over a work tree."""
