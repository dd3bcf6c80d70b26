"""Operation: the service, its dial and its health."""
