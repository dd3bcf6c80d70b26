// The JavaScript twin of target.py, as an adapter for a warm process.
const fs = require("fs");
const children = require("child_process");

function daemon() {
  const script = "setInterval(() => process.stdout.write('later'), 100)";
  const child = children.spawn(process.execPath, ["-e", script], { detached: true, stdio: ["ignore", 1, 2] });
  return String(child.pid);
}

let last = "none";

exports.compile = (word) => {
  if (word === "error") return { code: 1, stdout: "", stderr: "error: bad\n" };
  if (word === "panic") return { code: 101, stdout: "", stderr: "panicked\n" };
  if (word === "abort" || word === "segfault") {
    process.kill(process.pid, word === "abort" ? "SIGABRT" : "SIGSEGV");
    for (;;);
  }
  while (word === "flood") fs.writeSync(1, "x".repeat(65536));
  while (word === "loop");
  if (word === "sleep") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60000);
  if (word === "daemon") return { code: 0, stdout: "", stderr: daemon() };
  if (word === "parent") {
    try {
      process.kill(process.ppid, "SIGKILL");
    } catch (error) {
      if (error.code !== "EPERM") throw error;
    }
  }
  if (word === "files everywhere") {
    for (const folder of ["/box", "/tmp", "/dev/shm"]) {
      try {
        for (;;) fs.appendFileSync(`${folder}/full`, Buffer.alloc(1 << 20));
      } catch (error) {
        continue;
      }
    }
  }
  if (word === "litter") {
    fs.mkdirSync("deep/er", { recursive: true });
    fs.rmSync(process.cwd(), { recursive: true });
  }
  return { code: 0, stdout: "out:" + word, stderr: "" };
};
