"""The explorer of agents."""
