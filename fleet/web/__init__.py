"""The pages of a fleet for a browser: read by anyone who reaches the port, changed with a token."""
