"""The composition root: builds a daemon or a command's context from configuration, lock, jail and rooms."""
