"""How a campaign executes a program many times: one file for each way to share its start."""
