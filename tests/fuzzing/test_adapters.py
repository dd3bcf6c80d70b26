"""Adapters of the shipped targets, around stand-ins for the compilers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.files import ROOT
from sandbox.judging.verdict import judge, reason
from sandbox.programs.process import STDERR, Ending
from sandbox.programs.program import Program
from sandbox.runners.port import Execution

ADAPTERS = ROOT / "config" / "targets" / "adapters"
NODE = shutil.which("node")

VYPER = """
import sys
from vyper.exceptions import VyperException

def compile_files(paths, formats):
    [path] = paths
    source = open(path).read()
    if source == "wrong":
        raise VyperException("no such name")
    if source == "deep":
        fold(0)
    return {path: {formats: source}}

def _cli_helper(file, formats, compiled):
    for outputs in compiled.values():
        print(outputs[formats], file=file)

def fold(depth):
    return term(depth)

def term(depth):
    return fold(depth + 1)
"""

SOLC = """
let calls = 0;
function deep(at) { return deep(at + 1) + 1; }
exports.compile = (request) => {
  calls += 1;
  const source = JSON.parse(request).sources["source.sol"].content;
  if (source === "deep") deep(0);
  const errors = source === "wrong" ? [{ severity: "error", type: "TypeError", message: "no" }] : [];
  return JSON.stringify({ errors, contracts: { a: { b: { evm: { bytecode: { object: "0" + calls } } } } } });
};
process.on("uncaughtException", (error) => { throw error; });
"""

PARSER = """
let parsed = 0;
export class Parser {
  constructor() {
    this.donelog = new Set(); this.seenlog = new Set(); this.dependees = new Map();
    this.backlog = []; this.sources = [];
  }
  parseFile(text, path, isEntry) {
    if (this.donelog.has(path)) return;
    this.donelog.add(path); this.seenlog.add(path);
    this.sources.push({ internalPath: path, text, isEntry, times: ++parsed, exportPaths: path });
    if (path === "~lib/a") {
      this.dependees.set("~lib/b", "a");
      this.backlog.push("~lib/b");
    }
  }
}
"""

ASC = """
import { Parser } from "./assemblyscript.js";
export default {
  createMemoryStream: () => ({ said: "", toString() { return this.said; } }),
  async main(given, { readFile, writeFile, stderr }) {
    const parser = new Parser(), source = readFile("source.ts");
    parser.parseFile("library", "~lib/a", false);
    while (parser.backlog.length) parser.parseFile("library", parser.backlog.shift(), false);
    parser.parseFile(source, "source", true);
    if (source === "crash") {
      console.error("Whoops", source);
      process.exit(1);
    }
    if (source === "wrong") {
      stderr.said = "ERROR TS1: no";
      return { error: new Error("1 compile error(s)") };
    }
    const why = parser.dependees;
    const trees = parser.sources.map((one) => [one.internalPath, one.times, why.get(one.internalPath)]);
    writeFile("out.wasm", JSON.stringify(trees));
    return { error: null };
  },
};
"""

WARM = """
import { compile } from "./asc_main.mjs";
const said = [];
for (const one of ["x", "crash", "wrong", "y"]) said.push(await compile(one));
console.log(JSON.stringify(said.map((one) => [one.code, String(one.stdout), one.stderr])));
"""

DRIVE = """
const { compile } = require("./solc_main.js");
const said = ["a", "b", "wrong", "deep", "c"].map((one) => compile(one));
console.log(JSON.stringify(said.map((one) => [one.code, one.stdout, one.stderr])));
"""


def vyper(source: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    package = folder / "vyper"
    (package / "cli").mkdir(parents=True)
    for name in ("__init__.py", "cli/__init__.py"):
        (package / name).touch()
    (package / "exceptions.py").write_text("class VyperException(Exception): pass\n")
    (package / "cli" / "vyper_compile.py").write_text(VYPER)
    (folder / "a.vy").write_text(source)
    return subprocess.run(
        [sys.executable, str(ADAPTERS / "vyper_main.py"), str(folder / "a.vy")],
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
    )


def test_vyper_tells_a_users_mistake_and_a_whole_recursion(tmp_path: Path) -> None:
    done = vyper("right", tmp_path / "right")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"right\n", b"")
    done = vyper("wrong", tmp_path / "wrong")
    assert (done.returncode, done.stderr) == (1, b"Error: VyperException: no such name\n")
    done = vyper("deep", tmp_path / "deep")
    assert done.returncode == 1
    assert len(done.stderr) < STDERR
    program = Program(tool_chain="python", clean_error=r"^Error: \w+: ")
    execution = Execution(Ending.CLEAN_ERROR, 1, b"", done.stderr)
    verdict = judge(program, b"deep", execution)
    assert verdict.kind == "internal-error"
    assert verdict.place == "vyper_compile.py:fold < vyper_compile.py:term recursion"
    assert reason(program, execution, verdict.kind).startswith("RecursionError: ")


@pytest.mark.skipif(NODE is None, reason="no node on this machine")
def test_solc_tells_an_exception_by_its_stack_and_begins_anew(tmp_path: Path) -> None:
    home = tmp_path / "node_modules" / "solc"
    home.mkdir(parents=True)
    (home / "index.js").write_text(SOLC)
    adapter = (ADAPTERS / "solc_main.js").read_text().replace("/opt/tc", str(tmp_path))
    (tmp_path / "solc_main.js").write_text(adapter)
    (tmp_path / "drive.js").write_text(DRIVE)
    told = subprocess.run([str(NODE), "drive.js"], cwd=tmp_path, capture_output=True, check=True).stdout
    first, second, wrong, deep, after = json.loads(told)
    assert first == [0, "01\n", ""]
    assert second == [0, "02\n", ""]
    assert wrong == [1, "", "TypeError: no\n\n"]
    assert after == [0, "01\n", ""]  # loaded again: its memory after an exception is anything
    code, _, stack = deep
    verdict = judge(Program(), b"deep", Execution(Ending.CLEAN_ERROR, code, b"", stack.encode()))
    assert (code, verdict.kind) == (1, "internal-error")
    assert verdict.place == "index.js:deep recursion"
    cold = subprocess.run(
        [str(NODE), "solc_main.js"], input=b"deep", cwd=tmp_path, capture_output=True, check=False
    )
    assert cold.returncode == 1
    assert cold.stderr.startswith(b"Uncaught:\nRangeError: Maximum call stack size exceeded\n    at deep ")


@pytest.mark.skipif(NODE is None, reason="no node on this machine")
def test_asc_parses_its_library_once_and_survives_its_own_failure(tmp_path: Path) -> None:
    dist = tmp_path / "node_modules" / "assemblyscript" / "dist"
    dist.mkdir(parents=True)
    (dist / "package.json").write_text('{"type": "module"}')
    (dist / "assemblyscript.js").write_text(PARSER)
    (dist / "asc.js").write_text(ASC)
    adapter = (ADAPTERS / "asc_main.mjs").read_text().replace("/opt/tc", str(tmp_path))
    (tmp_path / "asc_main.mjs").write_text(adapter)
    (tmp_path / "warm.mjs").write_text(WARM)
    told = subprocess.run([str(NODE), "warm.mjs"], cwd=tmp_path, capture_output=True, check=True).stdout
    first, crash, wrong, last = json.loads(told)
    library = [["~lib/a", 1, None], ["~lib/b", 2, "a"]]
    assert (first[0], json.loads(first[1])) == (0, [*library, ["source", 3, None]])
    assert (last[0], json.loads(last[1])) == (0, [*library, ["source", 6, None]])
    assert crash == [1, "", "Whoops crash\n"]
    assert wrong == [1, "", "ERROR TS1: no"]
    for source, code in (("crash", 1), ("x", 0)):
        cold = subprocess.run(
            [str(NODE), "asc_main.mjs"], input=source.encode(), cwd=tmp_path, capture_output=True, check=False
        )
        assert cold.returncode == code
    assert json.loads(cold.stdout) == [*library, ["source", 3, None]]
