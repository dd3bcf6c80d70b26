"""Triage: the log as one ranked worklist. Decisions are pure; mirror, run and the writers do the I/O."""
