"""The contract of plugins with two patterns of authors: every message between Raddle and an unchanged program.

`plugin_transcripts/` has the conversations. `raddle plugin test` and the server must both have them, so what an author
tests is what runs. In a transcript, `-->` is sent by Raddle and `<--` by the plugin; `$name` inside a string sets a
variable, and later lines must have its value.
"""

import json
import re
import shutil
from pathlib import Path

from harness import Failure, require, require_equal, run_client, wait_until
from plugin_client import EVENT, PluginClient, add, configure, raddle, text_of, tool, tool_name, write_plugin

_FOLDER = Path(__file__).parent
_PROGRAMS = _FOLDER.parents[1] / "crates/raddle/tests/it/cli/plugin"
_PLUGIN, _METHOD = "org.example", "greeting/make"
_PARTS = (
    tool("greet", _METHOD, "Greets."),
    f'[[contributions.methods]]\nname = "{_METHOD}"\nexample = {{ name = "Ada" }}\n',
)
_LINE = re.compile(r"(-->|<--|exit) (.*)")


def patterns(bench):
    """Each program has its conversation with `raddle plugin test`, and with the server in a turn."""
    for name in ("blocking_call", "bridge"):
        folder = _installed_folder(bench, name)
        expected = (_FOLDER / f"plugin_transcripts/{name}.txt").read_text().splitlines()
        test = [bench.raddle, "plugin", "test", folder, "--approve", "--json"]
        code, out, _ = run_client(bench, test, bench.environment())
        require_equal(f"the exit code of the test of {name} ({out})", code, 0)
        _require_transcript(f"{name} with the test", json.loads(out)["stderr"], expected)
        _require_transcript(f"{name} with the server", _recorded(bench, name, folder), expected)


def _installed_folder(bench, name):
    """Returns the folder of a plugin whose program is recorded."""
    program = _PROGRAMS / f"{name}.py"
    folder = write_plugin(bench.folder / name, _PLUGIN, program, ["main.py"], ["workspace.read"], _PARTS)
    shutil.copyfile(_FOLDER / "plugin_recorder.py", folder / "recorder.py")
    manifest = folder / "plugin.toml"
    text = manifest.read_text().replace('["python3", "main.py", "main.py"]', '["python3", "recorder.py", "main.py"]')
    manifest.write_text(text.replace('version = "1"', 'version = "1.2.3"'))
    return folder


def _recorded(bench, name, folder):
    """Runs a turn that calls the plugin, lets the server stop the plugin, and returns the plugin's log."""
    configure(bench)
    add(bench, folder)
    client = PluginClient(bench)
    client.action = "accept"
    item = client.call_tool(tool_name(_PLUGIN, "greet"), {"name": "Ada"})
    require_equal(f"the call of {name}", (item["status"], "Hello, Ada" in text_of(item)), ("completed", True))
    require_equal("the questions", [it["serverName"] for it in client.questions], [_PLUGIN])
    events = [json.loads(it)["params"]["method"] for it in client.lines if f'"{EVENT}"' in it]
    require_equal("the events", events, ["codex/event"] if name == "bridge" else [])
    code, text = raddle(bench, "disable", _PLUGIN)
    require_equal(f"the exit code of disabling ({text})", code, 0)
    require_equal("the end of a turn without the plugin", client.turn("hello").status, "completed")

    def log():
        _, text = raddle(bench, "logs", _PLUGIN)
        return "the plugin is stopped" in text and "\nexit " in text and text

    text = wait_until(log)
    require(text, "the plugin was not stopped")
    client.leave()
    code, removed = raddle(bench, "remove", _PLUGIN)
    require_equal(f"the exit code of the removal ({removed})", code, 0)
    (bench.server_home / "plugins" / f"{_PLUGIN}.log").unlink()
    return text


def _require_transcript(what, text, expected):
    lines = [it for it in text.splitlines() if _LINE.fullmatch(it)]
    values = {}
    for number, (line, pattern) in enumerate(zip(lines, expected), start=1):
        (direction, found), (wanted_direction, wanted) = _parts(line), _parts(pattern)
        same = direction == wanted_direction and _matches(found, wanted, values)
        if not same:
            raise Failure(f"{what}, line {number}: expected {pattern}, found {line}")
    require_equal(f"the number of messages of {what}", len(lines), len(expected))


def _parts(line):
    direction, text = _LINE.fullmatch(line).groups()
    return direction, json.loads(text)


def _matches(found, wanted, values):
    match wanted:
        case dict():
            same_keys = isinstance(found, dict) and found.keys() == wanted.keys()
            return same_keys and all(_matches(found[key], it, values) for key, it in wanted.items())
        case str() if "$" in wanted:
            return isinstance(found, str) and _binds(found, wanted, values)
        case _:
            return found == wanted and type(found) is type(wanted)


def _binds(found, wanted, values):
    """Compares a string with one that has variables, and sets those that have no value."""
    pieces = re.split(r"\$(\w+)", wanted)
    named = (f"(?P<{it}>.+)" if it not in values else re.escape(values[it]) for it in pieces[1::2])
    texts = map(re.escape, pieces[::2])
    pattern = "".join(part for pair in zip(texts, [*named, ""]) for part in pair)
    match = re.fullmatch(pattern, found)
    values.update(match.groupdict() if match else {})
    return bool(match)


CHECKS = {
    "plugin-contract": patterns,
}
