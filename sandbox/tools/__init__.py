"""The explicit table of tools: adding one is one file and one line."""

from __future__ import annotations

from sandbox.spec import ToolSpec
from sandbox.tools import qa_call, qa_chain, qa_compile, qa_create, qa_fetch, qa_publish, qa_report

TOOLS: dict[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        qa_create.SPEC,
        qa_compile.SPEC,
        qa_publish.SPEC,
        qa_call.SPEC,
        qa_fetch.SPEC,
        qa_chain.SPEC,
        qa_report.SPEC,
    )
}
