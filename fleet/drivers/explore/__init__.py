"""Explorers: drivers without a model that ask new questions after a persona's probes."""
