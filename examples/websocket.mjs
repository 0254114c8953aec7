// Send requests to a running `raddle app-server --listen ws://…` over a websocket.
//
// Usage: node websocket.mjs URL [TOKEN-FILE]
//
// Node 22 or later; no packages. A browser cannot connect: the server rejects its `Origin` header.

import { readFileSync } from "node:fs";

class Connection {
  /** Resolves when the server has accepted the connection. */
  static open(url, token) {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const socket = new WebSocket(url, { headers });
    return new Promise((resolve, reject) => {
      socket.onopen = () => resolve(new Connection(socket));
      socket.onerror = () => reject(new Error(`cannot connect to ${url}; is it there, and is the token right?`));
    });
  }

  constructor(socket) {
    this.socket = socket;
    this.lastId = 0;
    this.waiting = new Map();
    socket.onmessage = ({ data }) => this.take(JSON.parse(data));
    socket.onclose = ({ code, reason }) => {
      for (const { reject } of this.waiting.values()) {
        reject(new Error(`closed with ${code} ${reason}`));
      }
    };
  }

  send(message) {
    this.socket.send(JSON.stringify(message));
  }

  /** Several requests may be pending at once; the id matches a response to its request. */
  ask(method, params) {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }

  take(message) {
    if ("method" in message) {
      // A notification, not a response.
      console.log("notification", message.method);
      return;
    }
    const { resolve, reject } = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) {
      reject(new Error(`${message.error.message} (${message.error.code})`));
    } else {
      resolve(message.result);
    }
  }
}

const [url, tokenFile] = process.argv.slice(2);
if (!url) {
  console.error("usage: node websocket.mjs URL [TOKEN-FILE]");
  process.exit(2);
}
const token = tokenFile && readFileSync(tokenFile, "utf8").trim();
try {
  const server = await Connection.open(url, token);
  const clientInfo = { name: "raddle-example", version: "1" };
  const { userAgent, raddle } = await server.ask("initialize", { clientInfo });
  server.send({ method: "initialized" });
  console.log(`connected to ${userAgent}, Raddle ${raddle.version}`);

  const [config, models] = await Promise.all([server.ask("config/read", {}), server.ask("model/list", {})]);
  console.log("config", config.config);
  console.log("models", models.data.map((model) => model.displayName));
  server.socket.close();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
