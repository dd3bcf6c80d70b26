"""The worklist, brought up to date before it is shown."""
