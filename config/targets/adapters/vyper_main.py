"""Vyper as a search needs it: its own words for a user's mistake, a whole traceback for a fault of its own.

The command line of vyper cuts every traceback to nothing, so that two internal errors look alike, and reads
its options anew for each input, which takes as long as refusing one.
"""

import sys
import traceback

from vyper.cli.vyper_compile import _cli_helper, compile_files
from vyper.exceptions import VyperException

FORMATS = ("bytecode",)
FIRST, LAST = 8_000, 40_000
"""Characters of a traceback that is longer: a whole recursion is more than a reader takes, and its last line
says what it was."""


def show(kind, error, trace):
    """What the interpreter would print of an exception, without the middle of a long one."""
    said = "".join(traceback.format_exception(kind, error, trace))
    if len(said) > FIRST + LAST:
        said = said[:FIRST].rpartition("\n")[0] + "\n    ...\n" + said[-LAST:].partition("\n")[2]
    sys.stderr.write(said)


def main(argv):
    """The bytecode of the file that `argv` names; its exit status."""
    sys.excepthook = show
    try:
        _cli_helper(sys.stdout, FORMATS, compile_files(argv, FORMATS))
    except VyperException as error:
        print(f"Error: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
