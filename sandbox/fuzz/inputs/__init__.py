"""Where the inputs of a search come from."""
