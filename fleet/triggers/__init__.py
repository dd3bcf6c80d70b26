"""Why runs start: the clock, back-off, the chain, files, webhooks, a person. One firing, one key, one run."""
