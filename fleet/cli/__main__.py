"""`python -m fleet.cli`: the same as `fleet`."""

from fleet.cli import main

main()
