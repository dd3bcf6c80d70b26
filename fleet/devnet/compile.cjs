// Standard JSON in on stdin, standard JSON out on stdout, by the solc that package-lock.json pins.
"use strict";
const solc = require("solc");

const chunks = [];
process.stdin.on("data", (chunk) => chunks.push(chunk));
process.stdin.on("end", () => process.stdout.write(solc.compile(Buffer.concat(chunks).toString("utf8"))));
