"""The trusted side of the QA fleet."""
