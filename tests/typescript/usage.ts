// Code as a client would write it against the generated types. The compiler runs over it in CI,
// with `./types` standing for what `generate-ts` wrote. Each `@ts-expect-error` is a mistake that the
// types must catch: should one of them become too loose, the compiler says that it found no error.

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

/** The method tells the params apart. */
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

/** The type of an item tells its members apart. */
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
