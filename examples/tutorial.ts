// Embeds Raddle: runs a turn, asks for approvals, survives a killed server. Arguments: path of raddle, prompt.
// Runs on Node 22.18 or later without a build step and without packages.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once as next } from "node:events";
import { createInterface } from "node:readline";
type Message = { id?: unknown; method?: string; params?: any; result?: any; error?: any; seq?: number };

const [raddle, prompt] = process.argv.slice(2);
let thread: string | undefined;
let seq = 0; // The number of the last notification received from the thread.
const printed = new Map<string, string>(); // The printed text of each message.
const key = randomUUID(); // Idempotency key: a request that is sent twice with it takes effect once.
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const capabilities = { extensions: { "raddle/seq": {}, "raddle/idempotency": {} } };

while (true) {
  const server = spawn(raddle, ["app-server"], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = next(server, "exit");
  server.stdin.on("error", () => {}); // The server was killed; its stdout ends too.
  const send = (message: Message) => server.stdin.write(`${JSON.stringify(message)}\n`);
  const ask = (method: string, params: object) => send({ id: method, method, params });
  ask("initialize", { clientInfo: { name: "tutorial", version: "1" }, capabilities });
  for await (const line of createInterface({ input: server.stdout })) {
    const { id, method, params, result, error, ...message }: Message = JSON.parse(line);
    if (error) {
      exit(`${id}: ${error.message}`);
    } else if (id === "initialize" && !thread) {
      ask("thread/start", { approvalPolicy: "untrusted", sandbox: "workspace-write", clientRequestId: key });
    } else if (id === "initialize") {
      ask("thread/resume", { threadId: thread, afterSeq: seq });
    } else if (id === "thread/start" || id === "thread/resume") {
      thread = result.thread.id;
      ask("turn/start", { threadId: thread, input: [{ type: "text", text: prompt }], clientRequestId: key });
    } else if (method === "item/agentMessage/delta") {
      process.stdout.write(params.delta);
      printed.set(params.itemId, (printed.get(params.itemId) ?? "") + params.delta);
    } else if (method === "item/completed" && params.item.type === "agentMessage") {
      console.log(params.item.text.slice(printed.get(params.item.id)?.length ?? 0));
    } else if (method === "item/started" && params.item.type === "fileChange") {
      for (const { path, diff } of params.item.changes) console.log(`${path}\n${diff}`);
    } else if (method && id !== undefined) {
      process.stdout.write(`${params.command ?? method}? [y/N] `);
      const { value } = await answers.next();
      send({ id, result: { decision: value === "y" ? "accept" : "decline" } });
    } else if (method === "turn/completed") {
      const { status, error } = params.turn;
      exit(status === "completed" ? undefined : error ? `${status}: ${error.message}` : status);
    }
    seq = message.seq ?? seq;
  }
  const [code] = await ended;
  if (code !== null) exit("the server exited; its last message on stderr says why");
}

function exit(why?: string): never {
  if (why) console.error(why);
  process.exit(why ? 1 : 0);
}
