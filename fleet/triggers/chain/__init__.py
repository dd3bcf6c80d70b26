"""Chain triggers: blocks watched from a durable cursor."""
