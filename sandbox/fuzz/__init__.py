"""The search of `qa_fuzz`: inputs, executions, what was new, and what was wrong, inside one jail."""
