"""Oracles of the chain: views, access, documented functions."""
