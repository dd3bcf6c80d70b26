"""The process fence around one tool call.

`bwrap` makes the real jail, `local` is a double without a fence for tests, `selfcheck` proves a fence by
behaviour, `reap` ends what a dead daemon left behind, `collect` and `rmtree` handle a directory that hostile
code has written to. Guests speak one request line on stdin and one result line on stdout.
"""
