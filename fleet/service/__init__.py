"""The resident service: runs triggers, queue and janitor, and reports their state."""
