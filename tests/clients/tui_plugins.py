"""What the stock terminal client shows: /mcp, /skills, /hooks and /plugins."""

import json
import re
import sys
from pathlib import Path

from harness import require, require_equal, run_client, wait_until
from mcp_client import sections
from mock_model import MODEL
from tui_client import EMPTY_PROMPT
from tui_session import ANSWER, PROMPT, Session

#: With the name `good` it behaves, and with `ends` it exits.
_PROGRAM = Path(__file__).with_name("mcp_hostile_program.py")
_SKILL = "Cuts a release of a crate."
#: A hook of a plugin.
_HOOK = '[[contributions.hooks]]\nevent = "PreToolUse"\nmatcher = "no_such_tool"\nmethod = "greeting/make"\n'
_NEEDS_REVIEW = "1 hook needs review before it can run."


def servers(bench):
    """Each server is shown with its state, and with the tools that the model gets."""
    session = Session(bench, [])

    def server(kind, **keys):
        return {"command": sys.executable, "args": [_PROGRAM, kind], **keys}

    table = {"good": server("good"), "dead": server("ends"), "off": server("good", enabled=False)}
    with open(bench.server_home / "config.toml", "a", encoding="utf-8") as file:
        file.write(sections(table))
    client = session.begin()
    client.enter("/mcp")
    client.require_shown("• dead: failed (0 tools)", "• good: connected (1 tool)", "• off: disabled (0 tools)")
    client.enter("/mcp verbose")
    client.terminal.wait_for("• Tools: act")
    _turn_again(client)
    tools = [name for name in session.model.tools()[-1] if name.startswith("mcp__")]
    require_equal("the tools of servers that the model gets", tools, ["mcp__good__act"])
    session.close(client)


def skills(bench):
    """The skill is listed until it is disabled in the client; then the model does not get it."""
    # The client requests the skills of its own folder and of the thread's, and shows the list that it read
    # last; so both are the same folder here.
    session = Session(bench, [], folder=bench.server_folder)
    folder = bench.client_home / ".agents/skills/release"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: release\ndescription: {_SKILL}\n---\n\n1. Go.\n")
    client = session.begin()
    require(_SKILL in json.dumps(session.model.bodies()), "the model did not get the skill")
    client.enter("/skills")
    client.terminal.wait_for("Choose an action")
    client.terminal.press("Enter")
    client.terminal.wait_for(f"release  [Skill] {_SKILL}")
    client.terminal.press("BSpace")
    client.enter("/skills")
    client.terminal.wait_for("Choose an action")
    client.terminal.press("2")
    client.terminal.wait_for("[x] release")
    client.terminal.press("Space")
    client.terminal.wait_for("[ ] release")
    client.call("skills/config/write", enabled=False)
    client.terminal.press("Escape")

    # A new thread, because the model gets the list of skills once in a thread.
    client.enter("/new")
    client.terminal.wait_for(EMPTY_PROMPT)
    _turn_again(client)
    require(_SKILL not in json.dumps(session.model.bodies()[-1]), "the model got a disabled skill")
    session.close(client)


def hooks(bench):
    """A new hook is asked about at the start, and is active once it is trusted in the client."""
    session = Session(bench, [], remote_clients_set_programs=True)
    program = bench.client_home / "no-push"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": str(program)}]}
    (bench.server_home / "hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}))
    client = session.start()
    client.terminal.answer("1 hook is new or changed.", "3")
    client.terminal.wait_for(f"{MODEL} default")
    client.first_turn(PROMPT, ANSWER)

    client.enter("/hooks")
    client.terminal.wait_for(_NEEDS_REVIEW)
    _require_counts(client, "PreToolUse", 1, 0, 1)
    client.terminal.press("Enter")
    client.terminal.wait_for("New hook - review required")
    client.terminal.wait_for(str(program))
    client.terminal.press("t")
    client.call("config/batchWrite")
    _close_popup(client)

    client.enter("/hooks")
    _require_counts(client, "PreToolUse", 1, 1, 0)
    _close_popup(client)
    session.close(client)


def plugins(bench):
    """An installed plugin and its hook are shown as they are and disabled in the client; the plugin is removed."""
    session = Session(bench, [], remote_clients_set_programs=True)
    folder = bench.folder / "hello"
    _raddle(bench, "new", folder, "--lang", "python")
    with open(folder / "plugin.toml", "a", encoding="utf-8") as file:
        file.write(_HOOK)
    _raddle(bench, "add", folder)
    client = session.begin()
    client.enter("/hooks")
    _require_counts(client, "PreToolUse", 1, 1, 0)
    client.terminal.press("Enter")
    client.terminal.wait_for("Plugin - local.hello")
    client.terminal.wait_for("greeting/make")
    client.terminal.press("Space")
    client.call("config/batchWrite")
    _close_popup(client)
    client.enter("/hooks")
    _require_counts(client, "PreToolUse", 1, 0, 0)
    _close_popup(client)

    client.enter("/plugins")
    client.terminal.wait_for("Installed 1 of 1 available plugins.")
    client.terminal.wait_for("local.hello")
    client.terminal.press("Enter")
    client.terminal.wait_for("local.hello · Installed · local")
    client.terminal.wait_for("tools: greet; may ask for: workspace.read")
    client.terminal.wait_for("local 0.1.0")
    _close_popup(client)

    client.enter("/plugins")
    client.terminal.wait_for("Tab to disable")
    client.terminal.press("Tab")
    client.call("config/value/write")
    client.terminal.wait_for("Tab to enable")
    _close_popup(client)
    require_equal("the state of the plugin", _listed(bench)["state"], "disabled")
    # The user changes a file, so the plugin does not run even if it is enabled.
    _raddle(bench, "enable", "local.hello")
    (folder / "other.py").touch()
    client.enter("/plugins")
    client.terminal.wait_for("Tab to enable")
    client.terminal.press("Enter")
    client.terminal.wait_for("local.hello · Disabled · local")
    client.terminal.wait_for("does not run: its files have changed since they were trusted")

    client.terminal.press("Down")
    client.terminal.wait_for("› 2. Uninstall plugin")
    client.terminal.press("Enter")
    client.call("plugin/uninstall", pluginId="local.hello")
    _close_popup(client)
    config = (bench.server_home / "config.toml").read_text()
    require("local.hello" not in config, "the plugin is still installed")
    session.close(client)


def _raddle(bench, *words):
    """Runs `raddle plugin`, and returns its output."""
    code, out, _ = run_client(bench, [bench.raddle, "plugin", *words], bench.environment())
    require_equal(f"the exit code of {words[0]}", code, 0)
    return out


def _listed(bench):
    (plugin,) = json.loads(_raddle(bench, "list", "--json"))
    return plugin


def _require_counts(client, event, installed, active, review):
    row = rf"{event}\s+{installed}\s+{active}(\s+{review})?\s"
    shown = wait_until(lambda: re.search(row, client.terminal.screen()))
    require(shown, f"the counts of {event} are not {installed}, {active} and {review}")


def _close_popup(client):
    def closed():
        client.terminal.press("Escape")
        return wait_until(lambda: EMPTY_PROMPT in client.terminal.screen(), deadline_s=1)

    require(wait_until(closed), "the client is not at its prompt")


def _turn_again(client):
    client.turn(f"Again: {PROMPT}", ANSWER)
    client.settle()


CHECKS = {
    "tui-mcp": servers,
    "tui-skills": skills,
    "tui-hooks": hooks,
    "tui-plugins": plugins,
}
