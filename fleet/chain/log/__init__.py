"""The feedback log: on chain, or in a file."""
