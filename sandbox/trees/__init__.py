"""A build's work tree in a jail."""
