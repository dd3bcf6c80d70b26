// solc from npm: bytecode of every contract on standard output, one a line; errors as solc words them.
// `node solc_main.js` compiles standard input; a warm process calls `compile` for each input.
"use strict";

const HOME = require.resolve("/opt/tc/node_modules/solc").replace(/[^/]*$/, "");
Error.stackTraceLimit = 200; // enough to see what a recursion repeats

let soljson = null;

function load() {
  for (const name of Object.keys(require.cache)) if (name.startsWith(HOME)) delete require.cache[name];
  soljson = require("/opt/tc/node_modules/solc");
  process.removeAllListeners("uncaughtException"); // its own prints megabytes of its code, and no stack
}

load();

function compile(source) {
  if (!soljson) load();
  try {
    return answered(source);
  } catch (error) {
    soljson = null; // an exception leaves its memory as it was in the middle of the call
    return { code: 1, stdout: "", stderr: `Uncaught:\n${(error && error.stack) || error}\n` };
  }
}

function answered(source) {
  const request = {
    language: "Solidity",
    sources: { "source.sol": { content: source } },
    settings: { outputSelection: { "*": { "*": ["evm.bytecode.object"] } } },
  };
  const answer = JSON.parse(soljson.compile(JSON.stringify(request)));
  const errors = (answer.errors || []).filter((one) => one.severity === "error");
  if (errors.length) {
    const said = errors.map((one) => `${one.type}: ${one.message}\n${one.formattedMessage || ""}`);
    return { code: 1, stdout: "", stderr: said.join("\n") + "\n" };
  }
  const lines = [];
  for (const contracts of Object.values(answer.contracts || {})) {
    for (const contract of Object.values(contracts)) lines.push(contract.evm.bytecode.object);
  }
  return { code: 0, stdout: lines.filter((one) => one).join("\n") + "\n", stderr: "" };
}

module.exports = { compile };

if (require.main === module) {
  const done = compile(require("fs").readFileSync(0, "utf8"));
  process.stdout.write(done.stdout);
  process.stderr.write(done.stderr);
  process.exitCode = done.code;
}
