"""The single checkpoint that every tool call passes."""
