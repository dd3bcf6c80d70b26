"""Which texts say the same in other words. Pure."""
