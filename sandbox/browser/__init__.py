"""A real browser in the jail; every request of a page goes through the broker."""
