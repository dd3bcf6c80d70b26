"""The log as triage has it: a mirror, read in pages."""
