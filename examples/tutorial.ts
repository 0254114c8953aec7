// Embeds Raddle: one turn, its questions, and going on when the server dies. Takes the path of raddle, and a prompt.
// Node 22.18 or later runs it as it is; no packages.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once as next } from "node:events";
import { createInterface } from "node:readline";
type Message = { id?: unknown; method?: string; params?: any; result?: any; error?: any; seq?: number };

const [raddle, prompt] = process.argv.slice(2);
let thread: string | undefined; // Which thread it is,
let seq = 0; // and the last record of it that we were told of.
const printed = new Map<string, string>(); // What was printed of each message.
const once = randomUUID(); // Whatever is asked for under this name is done once.
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const wishes = { extensions: { "raddle/seq": {}, "raddle/idempotency": {} } };

while (true) {
  const server = spawn(raddle, ["app-server"], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = next(server, "exit");
  server.stdin.on("error", () => {}); // Then it is dead, and its stdout ends.
  const send = (message: Message) => server.stdin.write(`${JSON.stringify(message)}\n`);
  const ask = (method: string, params: object) => send({ id: method, method, params });
  ask("initialize", { clientInfo: { name: "tutorial", version: "1" }, capabilities: wishes });
  for await (const line of createInterface({ input: server.stdout })) {
    const { id, method, params, result, error, ...message }: Message = JSON.parse(line);
    if (error) {
      exit(`${id}: ${error.message}`);
    } else if (id === "initialize" && !thread) {
      ask("thread/start", { approvalPolicy: "untrusted", sandbox: "workspace-write", clientRequestId: once });
    } else if (id === "initialize") {
      ask("thread/resume", { threadId: thread, afterSeq: seq });
    } else if (id === "thread/start" || id === "thread/resume") {
      thread = result.thread.id;
      ask("turn/start", { threadId: thread, input: [{ type: "text", text: prompt }], clientRequestId: once });
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
      exit(status === "completed" ? undefined : `${status}: ${error?.message}`);
    }
    seq = message.seq ?? seq;
  }
  const [code] = await ended;
  if (code !== null) exit("the server ended by itself; it says why above");
}

function exit(why?: string): never {
  if (why) console.error(why);
  process.exit(why ? 1 : 0);
}
