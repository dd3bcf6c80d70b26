"""Oracles of programs: a compiler ends, in a valid module or a clean error."""
