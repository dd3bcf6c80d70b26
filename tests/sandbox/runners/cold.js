// The adapter's program as a process of its own.
const fs = require("fs");
const done = require("./adapter.js").compile(fs.readFileSync(0, "utf8"));
fs.writeSync(1, done.stdout);
fs.writeSync(2, done.stderr);
process.exit(done.code);
