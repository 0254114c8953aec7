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
  // From Node 22.15 on, this process becomes the binary, and nothing stands between it and its caller.
  if (process.execve) {
    process.execve(program, [program, ...words], process.env);
  }
  standBetween(program, words);
}

/** An older Node stays, hands signals on, and ends as the binary ends. */
function standBetween(program, words) {
  const child = spawn(program, words, { stdio: "inherit" });
  // Ctrl-C reaches both, as both belong to the terminal; only others must be handed on.
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
