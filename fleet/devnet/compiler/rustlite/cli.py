"""`rustlite [--entry] [--defects a,b]`: source on stdin, wasm on stdout.

Exit 0 compiled, 1 refused with one line on stderr, 2 bad usage, 101 panic. With `--entry` stdin is a module
and stdout its entry point's name, always exit 0.
"""

from __future__ import annotations

import argparse
import sys

from .diagnostic import CompileError, render
from .loader import entry

DEFECTS = frozenset({"compiler-panic", "missing-entry", "loader-crash", "invalid-wasm", "compiler-hang"})
SOURCE_CAP = 65_536
MODULE_CAP = 1 << 24


def main(argv: list[str]) -> int:
    """The process's exit status."""
    parser = argparse.ArgumentParser(prog="rustlite")
    parser.add_argument("--entry", action="store_true", help="print the entry point of a module")
    parser.add_argument("--defects", type=_defects, default=frozenset(), help="seeded defects to switch on")
    options = parser.parse_args(argv)
    if options.entry:
        print(entry(sys.stdin.buffer.read(MODULE_CAP + 1)[:MODULE_CAP], options.defects))
        return 0
    source = sys.stdin.buffer.read(SOURCE_CAP + 1)
    try:
        # measured: the loader answers without paying 70 ms for the parser
        from .compile import compile_source

        try:
            module = compile_source(source, options.defects)
        except CompileError as error:
            print(render(error, source, options.defects), file=sys.stderr)
            return 1
        sys.stdout.buffer.write(module)
        return 0
    except ImportError as error:  # incomplete installation: not an answer about a source
        print(f"rustlite: {error}: `make setup`, or pip install 'qa-fleet[devnet]'", file=sys.stderr)
        return 127
    except Exception as error:  # a compiler's own failure is a panic, whatever it is
        import traceback  # measured: 5 ms, and a good run never panics

        frame = traceback.extract_tb(error.__traceback__)[-1]
        print(f"thread 'main' panicked at {frame.name}:{frame.lineno}:\n{error}", file=sys.stderr)
        return 101


def _defects(text: str) -> frozenset[str]:
    chosen = frozenset(filter(None, text.split(",")))
    if unknown := chosen - DEFECTS:
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not in {', '.join(sorted(DEFECTS))}")
    return chosen
