// Typical uses of the TypeScript SDK. Prints the responses as JSON.
// Usage: node typescript_sdk_program.mjs SDK RADDLE MODEL IMAGE FOLDER

import { writeSync } from "node:fs";

const [sdk, raddle, model, image, workingDirectory] = process.argv.slice(2);
const { Codex } = await import(sdk);

const codex = new Codex({ codexPathOverride: raddle, baseUrl: `${model}/v1`, apiKey: "a key of the program" });
const options = {
  model: "mock",
  sandboxMode: "danger-full-access",
  workingDirectory,
  skipGitRepoCheck: true,
  modelReasoningEffort: "high",
  approvalPolicy: "never",
  threadSource: "user",
};
const seen = {};

const thread = codex.startThread(options);
seen.run = await thread.run("what makes cloth?");
seen.thread = thread.id;
seen.again = await thread.run("and what makes yarn?");

const other = codex.startThread(options);
const { events } = await other.runStreamed("weave it");
seen.events = [];
for await (const event of events) seen.events.push(event);

const resumed = codex.resumeThread(thread.id, options);
seen.resumed = (await resumed.run("say that again")).finalResponse;
seen.sameThread = resumed.id === thread.id;

const outputSchema = {
  type: "object",
  properties: { colour: { type: "string" } },
  required: ["colour"],
  additionalProperties: false,
};
seen.schema = (await codex.startThread(options).run("which colour?", { outputSchema })).finalResponse;
seen.unfit = await failure(codex.startThread(options).run("any colour?", { outputSchema }));

const input = [
  { type: "text", text: "what is on it?" },
  { type: "local_image", path: image },
];
seen.image = (await codex.startThread(options).run(input)).finalResponse;
seen.imageLater = (await resumed.run(input)).finalResponse;

seen.failed = await failure(codex.startThread(options).run("fail, please"));

const stop = new AbortController();
const endless = codex.startThread(options);
const streamed = await endless.runStreamed("never stop", { signal: stop.signal });
seen.aborted = await failure(
  (async () => {
    for await (const event of streamed.events) {
      if (event.type !== "turn.started") continue;
      seen.heldAtAbort = await heldAnswers();
      stop.abort();
    }
  })(),
);
seen.endless = endless.id;

writeSync(1, JSON.stringify(seen));

// The number of responses that the model holds, once it holds one. The caller has a timeout.
async function heldAnswers() {
  for (;;) {
    const { held } = await (await fetch(`${model}/requests`)).json();
    if (held > 0) return held;
  }
}

async function failure(promise) {
  try {
    await promise;
    return null;
  } catch (error) {
    return error.message;
  }
}
