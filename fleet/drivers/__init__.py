"""What decides the next tool call. Here: the playbook, which needs no model."""
