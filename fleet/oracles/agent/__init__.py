"""Oracles of agents: callers, memory, replies, charges."""
