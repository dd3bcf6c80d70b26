// Run by Node: loads a compiler once and calls it for each order (see server.py).
//
//   node node_warm.js ADAPTER
//
// The adapter exports compile(source) -> {code, stdout, stderr}, or a promise of it; text or bytes. The
// source is the content of standard input. An exception is reported on standard error with its stack, and
// status 1, as a process of its own ends; the process goes on.
"use strict";

const fs = require("fs");
const path = require("path");
const url = require("url");

const CONTROL = 200;
const STATUS = 201;

function writeAll(fd, data) {
  const bytes = typeof data === "string" ? Buffer.from(data) : data || Buffer.alloc(0);
  for (let at = 0; at < bytes.length; ) at += fs.writeSync(fd, bytes, at);
}

function record(status, cpu) {
  const said = Buffer.alloc(24);
  said.writeInt32LE(status, 0);
  said.writeBigUInt64LE(BigInt(cpu), 8);
  fs.writeSync(STATUS, said);
}

async function once(compile) {
  const size = fs.fstatSync(0).size;
  const source = Buffer.alloc(size);
  if (size) fs.readSync(0, source, 0, size, 0);
  try {
    const done = await compile(source.toString("utf8"));
    writeAll(1, done.stdout);
    writeAll(2, done.stderr);
    return done.code & 255;
  } catch (error) {
    writeAll(2, `Uncaught:\n${(error && error.stack) || error}\n\nNode.js ${process.version}\n`);
    return 1;
  }
}

async function main() {
  const adapter = await import(url.pathToFileURL(path.resolve(process.argv[2])));
  const compile = adapter.compile || adapter.default.compile;
  const order = Buffer.alloc(1);
  record(0, 0);
  while (fs.readSync(CONTROL, order, 0, 1) === 1) {
    const before = process.cpuUsage();
    const code = await once(compile);
    const used = process.cpuUsage(before);
    record(code << 8, used.user + used.system);
  }
  process.exit(0);
}

main();
