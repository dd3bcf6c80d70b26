"""The life of a run: claim, exercise, prove, report, settle; and what a crash left behind."""
