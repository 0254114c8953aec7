// Typical uses of ai-sdk-provider-codex-cli with the AI SDK. Prints the responses as JSON.
// Usage: node ai_sdk_cli_program.mjs AI_SDK PROVIDER CODEX FOLDER

import { writeSync } from "node:fs";

const [sdk, packagePath, codexPath, cwd] = process.argv.slice(2);
const { generateText, streamText } = await import(sdk);
const { createCodexAppServer, createCodexExec } = await import(packagePath);
const NAME = "codex-app-server";
const seen = {};

// A process per call: `codex exec`.
const exec = createCodexExec({ defaultSettings: { codexPath, cwd } });
seen.exec = (await generateText({ model: exec("mock"), prompt: "what makes yarn?" })).text;

// One process for all calls: `codex app-server`.
const asked = [];
const defaultSettings = {
  codexPath,
  cwd,
  // Its messages would go to stdout.
  logger: false,
  threadMode: "persistent",
  approvalPolicy: "on-request",
  sandboxPolicy: "workspace-write",
  serverRequests: {
    onCommandExecutionApproval: async ({ params }) => {
      asked.push(params.command);
      return { decision: "accept" };
    },
  },
};
const first = createCodexAppServer({ defaultSettings });
seen.models = (await first.listModels()).models.map((it) => it.id);
const streamed = streamText({ model: first("mock"), prompt: "what makes cloth?" });
seen.pieces = [];
for await (const piece of streamed.textStream) seen.pieces.push(piece);
seen.thread = threadOf(await streamed.finalStep);
seen.approved = (await again(first, "may I weave?")).text;
seen.asked = asked;
await first.close();

// Another process resumes the thread.
const second = createCodexAppServer({ defaultSettings });
const resumed = await again(second, "which cloth was it?");
seen.resumed = resumed.text;
seen.resumedThread = threadOf(resumed.finalStep);
await second.close();

writeSync(1, JSON.stringify(seen));

function again(provider, prompt) {
  const providerOptions = { [NAME]: { threadId: seen.thread } };
  return generateText({ model: provider("mock"), prompt, providerOptions });
}

function threadOf(step) {
  return step.providerMetadata?.[NAME]?.threadId;
}
