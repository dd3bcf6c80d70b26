"""An agent's call and its reply."""
