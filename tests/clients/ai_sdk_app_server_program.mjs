// Typical uses of ai-sdk-provider-codex-app-server with the AI SDK. Prints the responses as JSON.
// Usage: node ai_sdk_app_server_program.mjs AI_SDK PROVIDER CODEX FOLDER

import { writeSync } from "node:fs";

const [sdk, packagePath, codexPath, cwd] = process.argv.slice(2);
const { streamText } = await import(sdk);
const { createCodexAppServer, listModels } = await import(packagePath);
const seen = {};

seen.models = (await listModels({ codexPath })).models.map((it) => it.id);

let session;
const defaultSettings = { codexPath, cwd, onSessionCreated: (it) => (session = it) };
const first = createCodexAppServer({ defaultSettings });
const model = first("mock");
seen.first = await turn(model, "what makes cloth?");
seen.thread = session.threadId;
seen.second = await turn(model, "weave it");
model.dispose();

// Another process resumes the thread.
const second = createCodexAppServer({ defaultSettings: { ...defaultSettings, resume: seen.thread } });
const resumed = second("mock");
seen.resumed = await turn(resumed, "which cloth was it?");
seen.resumedThread = session.threadId;
resumed.dispose();

writeSync(1, JSON.stringify(seen));

async function turn(model, prompt) {
  const streamed = streamText({ model, prompt });
  const told = { pieces: [], tools: [] };
  for await (const part of streamed.fullStream) {
    if (part.type === "text-delta") told.pieces.push(part.text);
    if (part.type === "tool-call") told.tools.push(part.toolName);
    if (part.type === "error") throw part.error;
  }
  return told;
}
