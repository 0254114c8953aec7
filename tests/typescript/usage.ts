// A client's code with the generated types. CI compiles it; `./types` is the output of `generate-ts`.
// Each `@ts-expect-error` is a mistake that the types must catch: if a type becomes too loose, the
// compiler reports an unused directive.

import type { ClientRequest, InitializeResponse, ServerNotification, ServerRequest, v2 } from "./types";

const initialize: ClientRequest = {
  id: 1,
  method: "initialize",
  params: { clientInfo: { name: "usage", title: null, version: "1" }, capabilities: null },
};
const models: ClientRequest = { id: "two", method: "model/list", params: {} };
const read: ClientRequest = { id: 3, method: "fs/readFile", params: { path: "/etc/hostname" } };
export const requests = [initialize, models, read];

// @ts-expect-error: no such method
export const unknown: ClientRequest = { id: 4, method: "no/such", params: {} };
// @ts-expect-error: the path is missing
export const pathless: ClientRequest = { id: 5, method: "fs/readFile", params: {} };
// @ts-expect-error: ids are numbers or strings
export const nameless: ClientRequest = { id: true, method: "model/list", params: {} };

export function hello(answer: InitializeResponse): string {
  return answer.userAgent.toUpperCase();
}

/** The method narrows the type of the params. */
export function told(notification: ServerNotification): string {
  switch (notification.method) {
    case "fs/changed":
      return notification.params.changedPaths.join();
    case "item/completed":
      return text(notification.params.item);
    default:
      return notification.method;
  }
}

/** The type of an item narrows its members. */
function text(item: v2.ThreadItem): string {
  if (item.type === "agentMessage") {
    return item.text;
  }
  // @ts-expect-error: only some items have a text
  return item.text;
}

export function asked(request: ServerRequest): string {
  if (request.method === "item/commandExecution/requestApproval") {
    return request.params.threadId;
  }
  return request.method;
}
