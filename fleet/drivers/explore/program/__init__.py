"""The explorer of programs: rounds of qa_fuzz."""
