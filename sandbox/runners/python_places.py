"""Which places of a Python program an execution passed. Loaded by python_warm.py, beside the program."""

from __future__ import annotations

import gc
import sys
import zlib
from array import array
from types import CodeType, FrameType, FunctionType
from typing import Any


class Places:
    """The code objects that a program enters, as numbers that mean the same in every process."""

    def __init__(self) -> None:
        self._seen: dict[int, CodeType] = {}
        self._numbers = {
            id(one.__code__): _number(one.__code__) for one in gc.get_objects() if type(one) is FunctionType
        }
        self._events: Any = getattr(sys, "monitoring", None)
        if self._events:
            self._events.use_tool_id(self._events.COVERAGE_ID, "places")
            start = self._events.events.PY_START
            self._events.register_callback(self._events.COVERAGE_ID, start, self._start)

    def begin(self) -> None:
        self._seen.clear()
        if self._events:
            self._events.set_events(self._events.COVERAGE_ID, self._events.events.PY_START)
            self._events.restart_events()
        else:
            sys.settrace(self._trace)

    def end(self) -> array[int]:
        if self._events:
            self._events.set_events(self._events.COVERAGE_ID, 0)
        else:
            sys.settrace(None)
        known = self._numbers
        for at, code in self._seen.items():
            if at not in known:
                known[at] = _number(code)
        return array("I", {known[at] for at in self._seen})

    def _start(self, code: CodeType, _offset: int) -> Any:  # noqa: ANN401  sys.monitoring's own return value
        self._seen[id(code)] = code
        return self._events.DISABLE

    def _trace(self, frame: FrameType, _event: str, _value: object) -> None:
        code = frame.f_code
        self._seen[id(code)] = code


def _number(code: CodeType) -> int:
    return zlib.crc32(f"{code.co_filename}:{code.co_firstlineno}:{code.co_name}".encode())
