// A plugin for Raddle: JSON-RPC 2.0 on stdin and stdout, one object per line.

import { createInterface } from "node:readline";

type Params = Record<string, any>;
type Message = {
  id?: string;
  method?: string;
  params?: Params;
  result?: any;
  error?: { message: string };
};
type Settle = { resolve: (result: any) => void; reject: (error: Error) => void };

const pending = new Map<string, Settle>();
let calls = 0;

/** Writes to the log. Stdout carries the protocol only. */
function log(text: string): void {
  process.stderr.write(text + "\n");
}

function send(message: Message): void {
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
}

/** Calls the host. Other messages are handled meanwhile. */
function hostCall(method: string, params: Params): Promise<any> {
  calls += 1;
  const id = `call-${calls}`;
  send({ id, method, params });
  return new Promise((resolve, reject) => pending.set(id, { resolve, reject }));
}

async function makeGreeting(params: Params, callId: string): Promise<Params> {
  const question = { permission: "workspace.read", call_id: callId };
  const { approved } = await hostCall("host/request_approval", question);
  log(`the permission is ${approved ? "approved" : "denied"}`);
  return { text: `Hello, ${params.name}!`, approved };
}

type Method = (params: Params, callId: string) => Params | Promise<Params>;

const methods: Record<string, Method> = {
  "plugin/health": () => ({ ok: true, plugin_id: "PLUGIN_ID", version: "0.1.0" }),
  "plugin/shutdown": () => ({ ok: true }),
  "greeting/make": makeGreeting,
};

async function answer(message: Message): Promise<void> {
  try {
    const method = methods[message.method ?? ""];
    if (!method) throw new Error(`unknown method ${message.method}`);
    send({ id: message.id, result: await method(message.params ?? {}, message.id!) });
  } catch (error) {
    send({ id: message.id, error: { message: String(error) } });
  }
  // Closes the input, after which nothing keeps the process running.
  if (message.method === "plugin/shutdown") lines.close();
}

const lines = createInterface({ input: process.stdin });
lines.on("line", (line: string) => {
  const message: Message = JSON.parse(line);
  if (message.method !== undefined) {
    if (message.id !== undefined) void answer(message);
    return;
  }
  const call = pending.get(message.id ?? "");
  pending.delete(message.id ?? "");
  if (message.error) call?.reject(new Error(message.error.message));
  else call?.resolve(message.result);
});
lines.on("close", () => process.stdin.destroy());
