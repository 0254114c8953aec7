#!/usr/bin/env node
"use strict";

const { spawn } = require("node:child_process");
const { findBin } = require("../index.js");

function main() {
  let program;
  try {
    program = findBin();
  } catch (error) {
    process.stderr.write(`raddle: ${error.message}\n`);
    process.exitCode = 1;
    return;
  }
  const words = process.argv.slice(2);
  // Node 22.15 or newer replaces this process with the binary, so no process remains in between.
  if (process.execve) {
    process.execve(program, [program, ...words], process.env);
  }
  standBetween(program, words);
}

/** With an older Node: runs the binary as a child, forwards signals, and exits as the binary does. */
function standBetween(program, words) {
  const child = spawn(program, words, { stdio: "inherit" });
  // The terminal sends Ctrl-C to both processes; only other signals are forwarded.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", (error) => {
    process.stderr.write(`raddle: cannot start ${program}: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => {
    if (signal) {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    }
    process.exitCode = code ?? 1;
  });
}

main();
