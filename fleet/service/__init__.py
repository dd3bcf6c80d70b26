"""The resident service: what keeps triggers, queue and janitor alive, and says how they are."""
