"""qa_compile: the outcome of a real child process, end to end through the guest."""

from __future__ import annotations

import pytest

from tests.sandbox.doubles import bench
from tests.sandbox.test_chain_tools import MODULE, compiler
from tests.sandbox.test_process import python

pytestmark = pytest.mark.anyio


async def test_compile_is_judged_by_the_process() -> None:
    async with bench() as it:
        good = await it.run("qa_compile", {"source": "x"}, program={"command": compiler(MODULE)})
        assert (good["ok"], good["outcome"], good["has_entry"], good["valid"]) == (
            True,
            "accepted",
            True,
            True,
        )
        assert (good["size"], good["entry"]) == (len(MODULE), "frame")
        bad = python("sys.stderr.write('LH0204: no such name [4..9]\\nmore'); sys.exit(1)")
        result = await it.run("qa_compile", {"source": "x"}, program={"command": bad})
        assert (result["ok"], result["outcome"], result["error"]) == (
            False,
            "clean_error",
            "LH0204: no such name [4..9]",
        )
        assert (result["span_start"], result["span_end"]) == (4, 9)
        endless = python("source = sys.stdin.read()\nwhile source == 'x': pass")
        args = {"source": "x", "timeout_s": 0.5}
        hang = await it.run("qa_compile", args, program={"command": endless})
        assert (hang["outcome"], hang["ok"], hang["error_class"]) == ("hang", False, "")
        assert hang["cpu_ms"] >= 500 > hang["control_cpu_ms"] > 0
        busy = await it.run("qa_compile", args, program={"command": endless, "sample": "x"}, deadline_s=4.0)
        assert (busy["outcome"], busy["ok"], busy["error_class"]) == ("unknown", False, "busy")
        panic = await it.run("qa_compile", {"module_hex": "00"}, program={"loader": python("sys.exit(101)")})
        assert (panic["outcome"], panic["exit_code"], panic["size"]) == ("panic", 101, 1)
