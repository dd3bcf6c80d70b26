"""Oracles of documents: what they state is true of the platform."""
