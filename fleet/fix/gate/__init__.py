"""The fix gate: from a repro to a patch that is proven, step by step, in jails."""
