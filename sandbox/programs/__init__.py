"""Untrusted programs as children of this jail: described, started, timed."""
