"""Findings: claims with evidence and a machine-runnable repro. Pure, but for the evidence files."""
