"""Items: what the log says of each, its life, its rank. Pure."""
