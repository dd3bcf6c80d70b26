"""One tool call: granted, gated, sent into a fresh jail, recorded, answered."""
