"""The chain as tools see it: by the broker alone."""
