"""Oracles of pages: what holds of every answer over HTTP."""
