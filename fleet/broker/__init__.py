"""A jail's only way out: what may leave it, decided and carried outside of it."""
