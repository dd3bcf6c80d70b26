"""The explorer of the chain: by simulation, nothing is sent."""
