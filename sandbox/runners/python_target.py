"""A Python program's function, called as its command line would be. Loaded by python_warm.py, beside it."""

from __future__ import annotations

import importlib
import inspect
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence


class PythonTarget:
    """The function, and the state of the interpreter that each call begins with."""

    def __init__(self, entry: str, arguments: Sequence[str]) -> None:
        module, _, name = entry.partition(":")
        self._call: Callable[..., object] = importlib.import_module(module)  # type: ignore[assignment]
        for part in name.split("."):
            self._call = getattr(self._call, part)
        self._arguments = list(arguments)
        kinds = inspect.signature(self._call).parameters.values()
        self._takes = any(one.default is one.empty and one.kind in (0, 1) for one in kinds)
        self._folder = os.getcwd()
        self._variables = dict(os.environ)
        self._limit = sys.getrecursionlimit()

    def set_arguments(self) -> None:
        sys.argv[:] = self._arguments

    def prepare(self) -> None:
        """What an earlier call in this process may have changed."""
        self.set_arguments()
        os.chdir(self._folder)
        if dict(os.environ) != self._variables:
            os.environ.clear()
            os.environ.update(self._variables)
        sys.setrecursionlimit(self._limit)
        sys.excepthook = sys.__excepthook__
        sys.__dict__.pop("tracebacklimit", None)
        getattr(warnings, "_filters_mutated", int)()  # a warning is said once for each input
        for name, fd, mode in (("stdin", 0, "rb"), ("stdout", 1, "wb"), ("stderr", 2, "wb")):
            old = getattr(sys, f"__{name}__")
            raw = open(fd, mode, closefd=False)  # noqa: SIM115
            new = io.TextIOWrapper(raw, old.encoding, old.errors, line_buffering=fd == 2)
            setattr(sys, name, new)
            setattr(sys, f"__{name}__", new)

    def run(self) -> tuple[int, str]:
        """Its exit status as an interpreter would give it, and a word for how it ended; "" is never usual."""
        try:
            result = self._call(sys.argv[1:]) if self._takes else self._call()
            code = result & 0xFF if type(result) is int else 0
            word = f"returned {code}"
        except SystemExit as stop:
            code = _status(stop.code)
            word = f"exit {code}"
        except (MemoryError, RecursionError) as error:
            code, word = _uncaught(error), ""
        except BaseException as error:
            trace, place = error.__traceback__, ""
            while trace:
                place, trace = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}", trace.tb_next
            code, word = _uncaught(error), f"{type(error).__qualname__} {place}"
        if not flushed():
            code, word = 120, ""
        return code, word


def _status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _uncaught(error: BaseException) -> int:
    """Reported as an interpreter does, without the frames of this file."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    try:
        sys.excepthook(type(error), error, trace)
    except BaseException:
        sys.__excepthook__(type(error), error, trace)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def flushed() -> bool:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return False
    return True
