// AssemblyScript from npm: a module on standard output; errors as asc words them.
// `node asc_main.mjs` compiles standard input; a warm process calls `compile` for each input.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import asc from "/opt/tc/node_modules/assemblyscript/dist/asc.js";

Error.stackTraceLimit = 200; // enough to see what a recursion repeats
// of diagnostics that are longer: a reader takes 64 KiB, and the last line says what they are
const FIRST = 40_000;
const LAST = 2_000;

async function main(...given) {
  try {
    return await asc.main(...given);
  } catch (error) {
    return { error }; // Node would print the line of its code, all of it, and no stack
  }
}

export async function compile(source) {
  let binary = new Uint8Array(0);
  const stderr = asc.createMemoryStream();
  const { error } = await main(["source.ts", "--outFile", "out.wasm", "-O0", "--noColors"], {
    stdout: asc.createMemoryStream(),
    stderr,
    readFile: (name) => (name === "source.ts" ? source : null),
    writeFile: (name, contents) => {
      if (name === "out.wasm") binary = contents;
    },
    listFiles: () => [],
  });
  let said = stderr.toString();
  if (said.length > FIRST + LAST) said = `${said.slice(0, FIRST)}\n${said.slice(-LAST)}`;
  if (!error) return { code: 0, stdout: Buffer.from(binary), stderr: "" };
  // asc reports a user's mistakes on its stream, and what it threw itself as the error
  const own = /^(Compile|Parse) error|\d+ (parse|compile) error\(s\)/.test(String(error.message)) && said;
  return { code: 1, stdout: "", stderr: own ? said : `${said}\n${error.stack || error}\n` };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const done = await compile(readFileSync(0, "utf8"));
  process.stdout.write(done.stdout);
  process.stderr.write(done.stderr);
  process.exitCode = done.code;
}
