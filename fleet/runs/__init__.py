"""The life of a run: claim, exercise, prove, report, settle; and recovery after a crash."""
