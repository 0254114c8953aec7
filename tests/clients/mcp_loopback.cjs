// Keeps servers of a Node program on the loopback address: the servers of the conformance suite listen on every
// address of the machine.
//
// `listen` with a host binds later than `listen` without one, and the suite reads the port at once. So this changes
// the step that binds, which Node keeps as a method.
"use strict";

const net = require("node:net");

const bind = net.Server.prototype._listen2;
if (typeof bind !== "function") {
  throw new Error("this version of Node binds in another way; change mcp_loopback.cjs");
}
net.Server.prototype._listen2 = function (address, port, addressType, ...rest) {
  if (address === null && typeof port === "number" && port >= 0) {
    return bind.call(this, "127.0.0.1", port, 4, ...rest);
  }
  return bind.call(this, address, port, addressType, ...rest);
};
