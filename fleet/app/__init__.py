"""The composition root: configuration, lock, jail and rooms become one daemon or one command's context."""
