"""The end of every run: posts, open effects, reorgs, and what a crash left behind."""
