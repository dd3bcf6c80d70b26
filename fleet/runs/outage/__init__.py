"""Is the platform down, or are we? Looks, their verdict, the open outage and its finding."""
