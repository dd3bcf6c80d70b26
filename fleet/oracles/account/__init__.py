"""Oracles of accounts: rights, sessions, what one makes and another reads."""
