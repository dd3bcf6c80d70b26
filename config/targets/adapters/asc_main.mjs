// AssemblyScript from npm: a module on standard output; errors as asc words them.
// `node asc_main.mjs` compiles standard input; a warm process calls `compile` for each input, and there the
// library, nine tenths of the time of a small program, is parsed once.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Parser } from "/opt/tc/node_modules/assemblyscript/dist/assemblyscript.js";
import asc from "/opt/tc/node_modules/assemblyscript/dist/asc.js";

Error.stackTraceLimit = 200; // enough to see what a recursion repeats
// of diagnostics that are longer: a reader takes 64 KiB, and the last line says what they are
const FIRST = 40_000;
const LAST = 2_000;
const LIBRARY = "~lib/";

const cold = process.argv[1] === fileURLToPath(import.meta.url);

// What asc's parser does with a file of the library, from the tree of the first time: a program only reads it,
// but for two fields of its root.
function keepLibrary() {
  const parse = Parser.prototype.parseFile;
  const kept = new Map();
  Parser.prototype.parseFile = function (text, path, isEntry) {
    if (!text || !path.startsWith(LIBRARY)) return parse.call(this, text, path, isEntry);
    const key = `${isEntry} ${path}`;
    if (!kept.has(key)) {
      const alone = new Parser();
      parse.call(alone, text, path, isEntry);
      kept.set(key, { tree: alone.sources[0], wanted: alone.backlog, dependees: alone.dependees });
    }
    const { tree, wanted, dependees } = kept.get(key);
    if (this.donelog.has(tree.internalPath)) return;
    this.donelog.add(tree.internalPath);
    this.seenlog.add(tree.internalPath);
    tree.debugInfoIndex = -1;
    tree.exportPaths = null;
    this.sources.push(tree);
    this.currentSource = tree;
    this.currentModuleName = null;
    for (const one of wanted) {
      if (this.seenlog.has(one)) continue;
      this.dependees.set(one, dependees.get(one));
      this.backlog.push(one);
    }
  };
}

if (!cold) keepLibrary();

// After a failure of its own asc prints it and ends the process: a warm one goes on.
async function main(said, ...given) {
  const { exit } = process;
  const { error: print } = console;
  process.exit = () => {
    throw new Error("ended");
  };
  console.error = (...words) => said.push(words.join(" "));
  try {
    return await asc.main(...given);
  } catch (error) {
    return { error }; // Node would print the line of its code, all of it, and no stack
  } finally {
    process.exit = exit;
    console.error = print;
  }
}

export async function compile(source) {
  let binary = new Uint8Array(0);
  const stderr = asc.createMemoryStream();
  const crashed = [];
  const { error } = await main(crashed, ["source.ts", "--outFile", "out.wasm", "-O0", "--noColors"], {
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
  if (crashed.length) return { code: 1, stdout: "", stderr: `${said}${crashed.join("\n")}\n` };
  if (!error) return { code: 0, stdout: Buffer.from(binary), stderr: "" };
  // asc reports a user's mistakes on its stream, and what it threw itself as the error
  const own = /^(Compile|Parse) error|\d+ (parse|compile) error\(s\)/.test(String(error.message)) && said;
  return { code: 1, stdout: "", stderr: own ? said : `${said}\n${error.stack || error}\n` };
}

if (cold) {
  const done = await compile(readFileSync(0, "utf8"));
  process.stdout.write(done.stdout);
  process.stderr.write(done.stderr);
  process.exitCode = done.code;
}
