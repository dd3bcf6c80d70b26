"""Configuration, platform and machine: whether the fleet can work."""
