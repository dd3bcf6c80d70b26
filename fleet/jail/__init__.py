"""The process fence around one tool call.

`bwrap` and `docker` make the jails, `choice` says which, `selfcheck` proves a fence by behaviour, `diagnosis`
explains why there is none, `reap` ends what a dead daemon left behind, `rmtree` removes a directory that
hostile code has written to. Guests speak one request line on stdin and one result line on stdout.
"""
