"""The chain room: JSON-RPC, keys, the signing policy, names and the feedback log."""
