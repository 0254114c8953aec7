"""A client for checks of plugins: their folders, their installation, and calls of their tools by the mock."""

import json
import shutil

from harness import Failure, require, require_equal, run_client
from mock_model import MockModel
from stdio_client import StdioClient, Turn

QUESTION = "mcpServer/elicitation/request"
EVENT = "plugin/event"
#: The folder of a check may be in /tmp, which an agent may write by default. No plugin runs from there.
NO_TMP = {
    "sandbox_workspace_write.exclude_slash_tmp": True,
    "sandbox_workspace_write.exclude_tmpdir_env_var": True,
}
_RULE = '[[rule]]\ntool = "plugin__*"\nverdict = "allow"\n'


def tool(name="act", method="act", description="Acts.", schema='{ type = "object" }'):
    """Returns the part of a manifest with a tool."""
    keys = f"name = {json.dumps(name)}\nmethod = {json.dumps(method)}\ndescription = {json.dumps(description)}\n"
    return f"[[contributions.tools]]\n{keys}input_schema = {schema}\n"


def write_plugin(folder, plugin, program, words=(), permissions=(), parts=(tool(),)):
    """Writes the folder of a plugin whose program is a copy of this one."""
    folder.mkdir(parents=True)
    shutil.copyfile(program, folder / "main.py")
    keys = {
        "id": plugin,
        "version": "1",
        "entrypoint": ["python3", "main.py", *map(str, words)],
        "permissions": list(permissions),
    }
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in keys.items()]
    (folder / "plugin.toml").write_text("".join([*lines, *parts]))
    return folder


def raddle(bench, *words):
    """Runs `raddle plugin`. Returns its exit code, and its output on both streams."""
    code, out, err = run_client(bench, [bench.raddle, "plugin", *words], bench.environment())
    return code, err + out


def add(bench, folder):
    code, out = raddle(bench, "add", folder)
    require_equal(f"the exit code of the installation ({out})", code, 0)


def configure(bench, answers=(), **settings):
    """Writes a configuration with the mock, which is returned, and allows the tools of plugins."""
    model = MockModel(bench, answers)
    settings = {"sandbox_mode": "workspace-write", "approval_policy": "on-request", **NO_TMP, **settings}
    model.configure(bench, **settings)
    (bench.server_home / "rules.toml").write_text(_RULE)
    return model


def tool_name(plugin, tool="act"):
    """Returns the name of a tool for the model, if it has no digest."""
    return f"plugin__{plugin.replace('.', '_')}__{tool}"


class PluginCalls:
    """The part of a client that calls plugins. It gives one answer to all their questions."""

    capabilities = {"extensions": {"raddle/plugins": {}}}
    action = "decline"

    @property
    def questions(self):
        """Returns the params of all questions so far."""
        messages = [json.loads(it) for it in self.lines if QUESTION in it]
        return [it["params"] for it in messages if it.get("method") == QUESTION]

    def _messages(self):
        for message in super()._messages():
            if message.get("method") == QUESTION and self.action:
                self.answer(message)
            yield message

    def answer(self, question):
        self._write({"id": question["id"], "result": {"action": self.action, "content": {}, "_meta": None}})

    def new_thread(self, bench, **settings):
        """Starts a thread, and uses it from now on."""
        started = self.call("thread/start", {"cwd": str(bench.workspace), **settings})
        self.thread = started["thread"]["id"]
        return self.thread

    def turn(self, text):
        """Runs a turn of its thread. Those of other threads may end meanwhile."""
        self._begin(text)
        return self.end()

    def _begin(self, text):
        self._send("turn/start", {"threadId": self.thread, "input": [{"type": "text", "text": text}]})

    def begin(self, name, arguments=None):
        """Starts a turn in which the model calls a tool."""
        self._begin(f"MOCK call name={name} arguments={json.dumps(arguments or {})}")

    def until(self, *methods):
        """Reads to the next message with one of these methods, and returns it."""
        for message in self._messages():
            require("error" not in message, f"a response was {message}")
            if message.get("method") in methods:
                return message
        raise Failure(f"the server ended before {methods}")

    def end(self):
        """Reads the turn of its thread to its end, and returns it."""
        turn = Turn()
        for message in self._messages():
            require("error" not in message, f"a response was {message}")
            if message.get("params", {}).get("threadId") == self.thread and turn.hear(message):
                return turn
        raise Failure("the server ended before the turn did")

    def call_tool(self, name, arguments=None):
        """Lets the model call a tool. Returns the item of the call, or None if it was refused."""
        self.begin(name, arguments)
        turn = self.end()
        require_equal(f"how the turn with {name} ended", (turn.status, turn.error), ("completed", None))
        return call_of(turn)

    def interrupt(self, turn):
        self._send("turn/interrupt", {"threadId": self.thread, "turnId": turn})


class PluginClient(PluginCalls, StdioClient):
    """A client with its own server process."""


def call_of(turn):
    """Returns the item of the tool call in a turn, if there is one."""
    items = [it for it in turn.items if it["type"] == "mcpToolCall"]
    require(len(items) < 2, f"the turn has {len(items)} calls")
    return items[0] if items else None


def text_of(item):
    """Returns the text of a result, or the error."""
    if item["error"]:
        return item["error"]["message"]
    return "\n".join(it.get("text", "") for it in item["result"]["content"])
