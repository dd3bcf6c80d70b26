"""Contestants of mark B3: compilers in Python and JavaScript, cold, warm, and in process."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from compileall import compile_dir
from contextlib import AbstractContextManager
from pathlib import Path

from sandbox.programs.process import Ending
from sandbox.programs.program import Program
from sandbox.runners.choice import runner

Rates = dict[str, Callable[[float], float]]
VYPER = """\
# pragma version ^0.4.0
total: public(uint256)

@external
def add(amount: uint256) -> uint256:
    self.total += amount
    return self.total
"""
SOLIDITY = "contract C { uint public x; function f(uint y) external { x = y + 1; } }\n"
IN_PROCESS = """\
import os, sys, time
from vyper.cli.vyper_compile import _parse_cli_args
sys.argv[1:] = [sys.argv[1]]
out, sys.stdout = sys.stdout, open(os.devnull, "w")
for line in sys.stdin:
    began, done = time.monotonic(), 0
    while time.monotonic() - began < float(line):
        _parse_cli_args()
        done += 1
    print(done / (time.monotonic() - began), file=out, flush=True)
"""
ADAPTER = """\
const solc = require(%s);
exports.compile = (source) => {
  const settings = { outputSelection: { "*": { "*": ["evm.bytecode.object"] } } };
  const input = { language: "Solidity", sources: { "a.sol": { content: source } }, settings };
  const said = JSON.parse(solc.compile(JSON.stringify(input)));
  const contract = ((said.contracts || {})["a.sol"] || {}).C;
  const errors = (said.errors || []).map((error) => error.formattedMessage).join("");
  if (!contract) return { code: 1, stdout: "", stderr: errors };
  return { code: 0, stdout: contract.evm.bytecode.object, stderr: "" };
};
"""
COLD = """\
const done = require("./adapter.js").compile(require("fs").readFileSync(0, "utf8"));
process.stdout.write(done.stdout);
process.stderr.write(done.stderr);
process.exitCode = done.code;
"""


def contests(
    vyper: Path | None, solc: Path | None, folder: Path, missing: list[str]
) -> Iterator[tuple[str, AbstractContextManager[Rates]]]:
    if vyper:
        yield "vyper", of_vyper(vyper, folder)
    else:
        missing.append("B3 vyper: no --vyper FOLDER")
    if solc:
        yield "solc-js", of_solc(solc, folder)
    else:
        missing.append("B3 solc-js: no --solc FOLDER")


@contextlib.contextmanager
def of_vyper(site: Path, folder: Path) -> Iterator[Rates]:
    compile_dir(site, quiet=2)
    (folder / "a.vy").write_text(VYPER)
    program = Program(
        command=("{python}", "-m", "vyper", "{source}"),
        source_by="file",
        file_name="a.vy",
        output="evm",
        warm="python",
        warm_entry="vyper.cli.vyper_compile:_parse_cli_args",
        environment={"PYTHONPATH": str(site)},
        memory_mb=1024,
        sample=VYPER,
    )
    line = subprocess.Popen(
        [sys.executable, "-c", IN_PROCESS, folder / "a.vy"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **program.environment},
    )

    def in_process(seconds: float) -> float:
        assert line.stdin
        assert line.stdout
        print(seconds, file=line.stdin, flush=True)
        return float(line.stdout.readline())

    def cold(seconds: float) -> float:
        argv = [sys.executable, "-m", "vyper", str(folder / "a.vy")]
        return _cold(argv, b"", {**os.environ, **program.environment}, seconds)

    with line, _warm(program, VYPER.encode()) as ours:
        yield {"cold": cold, "ours": ours, "in process": in_process}
        assert line.stdin
        line.stdin.close()


@contextlib.contextmanager
def of_solc(modules: Path, folder: Path) -> Iterator[Rates]:
    """`modules` holds node_modules/solc, or is that folder."""
    inner = modules / "node_modules" / "solc"
    (folder / "adapter.js").write_text(ADAPTER % json.dumps(str(inner if inner.is_dir() else modules)))
    (folder / "cold.js").write_text(COLD)
    command = ("/usr/bin/node", str(folder / "cold.js"))
    program = Program(
        command=command,
        output="evm",
        warm="node",
        warm_entry=str(folder / "adapter.js"),
        memory_mb=4096,
        sample=SOLIDITY,
    )

    def cold(seconds: float) -> float:
        return _cold([*command], SOLIDITY.encode(), dict(os.environ), seconds)

    with _warm(program, SOLIDITY.encode()) as ours:
        yield {"cold": cold, "ours": ours}


def _cold(argv: list[str], given: bytes, environment: dict[str, str], seconds: float) -> float:
    began, done = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        subprocess.run(argv, input=given, capture_output=True, check=True, env=environment)
        done += 1
    return done / (time.monotonic() - began)


@contextlib.contextmanager
def _warm(program: Program, source: bytes) -> Iterator[Callable[[float], float]]:
    subject = runner(program, "compiler")
    assert subject.name == program.warm, subject.name

    def rate(seconds: float) -> float:
        began, done = time.monotonic(), 0
        while time.monotonic() - began < seconds:
            said = subject.run(source, 10)
            assert said.ending is Ending.ACCEPTED, said
            done += 1
        return done / (time.monotonic() - began)

    try:
        rate(1.0)
        yield rate
    finally:
        subject.close()
