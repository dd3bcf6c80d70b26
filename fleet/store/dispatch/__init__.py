"""Which of several daemons looks at which run."""
