"""Measured marks: each module prints medians and ratios, and fails below its floor."""
