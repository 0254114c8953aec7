// A client of VS Code's agent host: AHP 0.9, which is JSON-RPC over a websocket. Prints what it saw as JSON.
//
// Without a session, it creates one. Then it runs turns: arrays of a message and the user's act during the
// turn, which is `approve`, `decline`, `cancel` or nothing. An array with `cancel` also has the address of the
// model: the turn is cancelled when that holds a response.
//
// Usage: node vscode_host_program.mjs ADDRESS FOLDER PRESET TURNS [SESSION]

import { randomUUID } from "node:crypto";
import { writeSync } from "node:fs";
import { pathToFileURL } from "node:url";

const ROOT = "ahp-root://";
const PROVIDER = "codex";
const [address, folder, preset, turns, known] = process.argv.slice(2);

class Host {
  #socket;
  #lastId = 0;
  #lastSequence = 0;
  #calls = new Map();
  #actions = [];
  #waiting = [];

  static async connect(address) {
    const host = new Host();
    host.#socket = new WebSocket(address);
    host.#socket.onmessage = ({ data }) => host.#receive(JSON.parse(data));
    await new Promise((resolve, reject) => {
      host.#socket.onopen = resolve;
      host.#socket.onerror = () => reject(new Error(`cannot connect to ${address}`));
    });
    return host;
  }

  call(method, params) {
    const id = ++this.#lastId;
    this.#send({ id, method, params });
    return new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
  }

  dispatch(channel, action) {
    const clientSeq = ++this.#lastSequence;
    this.#send({ method: "dispatchAction", params: { channel, clientSeq, action } });
  }

  // Every action from now on. The caller of this program has a timeout.
  async *actions() {
    for (let next = this.#actions.length; ; next++) {
      while (next >= this.#actions.length) await new Promise((resolve) => this.#waiting.push(resolve));
      yield this.#actions[next];
    }
  }

  close() {
    this.#socket.close();
  }

  #send(message) {
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
  }

  #receive(message) {
    if (message.method === undefined) {
      const call = this.#calls.get(message.id);
      this.#calls.delete(message.id);
      if (message.error) call.reject(new Error(JSON.stringify(message.error)));
      else call.resolve(message.result);
    } else if (message.id !== undefined) {
      this.#send({ id: message.id, error: { code: -32601, message: "not served" } });
    } else if (message.method === "action") {
      this.#actions.push(message.params);
      for (const resolve of this.#waiting.splice(0)) resolve();
    }
  }
}

class Chat {
  constructor(host, channel) {
    this.host = host;
    this.channel = channel;
  }

  // Runs a turn, answers what it asks for, and returns what was seen.
  async turn(text, does, model) {
    const turnId = randomUUID();
    const seen = { text: "", asked: [], results: [] };
    const actions = this.host.actions();
    const message = { text, origin: { kind: "user" } };
    const startedAt = new Date().toISOString();
    // The generator must have begun before the turn, so that it misses nothing.
    let next = actions.next();
    this.host.dispatch(this.channel, { type: "chat/turnStarted", turnId, startedAt, message });
    for (; ; next = actions.next()) {
      const { channel, action, rejectionReason } = (await next).value;
      if (channel !== this.channel) continue;
      if (rejectionReason) throw new Error(`${action.type}: ${rejectionReason}`);
      switch (action.type) {
        case "chat/turnStarted":
          if (does === "cancel") this.#cancel(turnId, model);
          break;
        case "chat/responsePart":
          if (action.part.kind === "markdown") seen.text += action.part.content;
          break;
        case "chat/delta":
          seen.text += action.content;
          break;
        case "chat/toolCallReady":
          if (!action.confirmed) this.#answer(action, seen, does === "approve");
          break;
        case "chat/toolCallComplete":
          seen.results.push(...(action.result.content ?? []).map((it) => it.text ?? ""));
          break;
        case "chat/turnComplete":
        case "chat/turnCancelled":
        case "chat/error":
          return { ...seen, end: action.type, ...(action.part?.error ? { error: action.part.error } : {}) };
      }
    }
  }

  async #cancel(turnId, model) {
    for (let held = 0; held !== 1; ) ({ held } = await (await fetch(`${model}/requests`)).json());
    this.host.dispatch(this.channel, { type: "chat/turnCancelled", turnId, duration: 1 });
  }

  #answer({ turnId, toolCallId, options, ...rest }, seen, approved) {
    seen.asked.push(rest.invocationMessage ?? rest.toolInput ?? "");
    const type = "chat/toolCallConfirmed";
    const selected = options?.find((it) => it.kind === (approved ? "approve" : "deny"))?.id;
    this.host.dispatch(this.channel, {
      ...{ type, turnId, toolCallId, approved },
      ...(approved ? { confirmed: "user-action" } : { reason: "denied" }),
      ...(selected ? { selectedOptionId: selected } : {}),
    });
  }
}

const host = await Host.connect(address);
const actions = host.actions();
const change = actions.next();
const clientId = randomUUID();
const { protocolVersion, snapshots } = await host.call("initialize", {
  channel: ROOT,
  protocolVersions: ["0.9.0"],
  clientId,
  clientInfo: { name: "raddle-check", version: "1" },
  initialSubscriptions: [ROOT],
});
const seen = { protocolVersion };
await agent(snapshots[0].state.agents, change);

const session = known ?? `${PROVIDER}:/${randomUUID()}`;
const directory = pathToFileURL(folder).href;
if (!known) {
  const activeClient = { clientId, tools: [], displayName: "check" };
  const workingDirectories = [directory];
  const config = { "codex.permissionsPreset": preset };
  const params = { channel: session, provider: PROVIDER, workingDirectories, config, activeClient };
  await host.call("createSession", params);
}
seen.session = session;
const { snapshot } = await host.call("subscribe", { channel: session });
const chat = new Chat(host, snapshot.state.defaultChat);
const opened = await host.call("subscribe", { channel: chat.channel });
seen.earlierTurns = opened.snapshot.state.turns?.length ?? 0;

seen.turns = [];
for (const turn of JSON.parse(turns)) seen.turns.push(await chat.turn(...turn));
writeSync(1, JSON.stringify(seen));
host.close();

// Waits until the host offers the agent; it starts the program once to see whether it can.
async function agent(agents, next) {
  const offered = (list) => list?.some((it) => it.provider === PROVIDER);
  for (let list = agents; !offered(list); next = actions.next()) {
    const { action } = (await next).value;
    if (action.type === "root/agentsChanged") list = action.agents;
  }
}
