// Keeps servers of a Node program on the loopback address: the servers of the conformance suite listen on every
// address of the machine.
"use strict";

const net = require("node:net");

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (first, ...rest) {
  if (typeof first === "number" && typeof rest[0] !== "string") {
    return listen.call(this, first, "127.0.0.1", ...rest);
  }
  if (typeof first === "object" && first !== null && "port" in first && !first.host) {
    return listen.call(this, { ...first, host: "127.0.0.1" }, ...rest);
  }
  return listen.call(this, first, ...rest);
};
