"""The event stream of a run."""
