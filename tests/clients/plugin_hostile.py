"""Hostile plugins: what they may do, and what must not happen to anything else.

All plugins of the tables are installed beside each other, together with one that behaves. After each case the tool of
that plugin is called, and an ordinary turn is run, so that a case which harms others is found. An effect is anything
that a case does beyond its own call.
"""

import json
import re
import secrets
import shutil
import zipfile

from harness import Failure, require, require_equal, wait_until
from plugin_client import EVENT, PluginClient, add, call_of, configure, raddle, text_of, tool_name, write_plugin
from plugin_hostile_cases import BROKEN, CHANGES, CI, PROGRAM, PROOF, READ, SLOW, STAYS, Case, cases, rejections
from plugin_hostile_paths import Paths, marked, running
from stdio_client import Turn

_GOOD = "org.good"
#: The part of a key that the hostile program searches for.
_KEY = "planted-key-"
_SECRETS = ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "RADDLE_SOCKET_TOKEN"]
#: Bytes of an item, a model call, the log of the server and that of a plugin, however much a plugin sends.
_ITEM_BYTES_MAX = 512 << 10
_BODY_BYTES_MAX = 256 << 10
_LOG_BYTES_MAX = 8 << 20
_PLUGIN_LOG_BYTES_MAX = 3 << 20
#: Peak memory of the process, in KiB: a few messages of the largest size, for all plugins together.
_MEMORY_KIB_MAX = 512 << 10
#: What a terminal or a reader could be misled by.
ESCAPES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def beside_others(bench):
    _run(bench, CI)


def beside_others_at_full_size(bench):
    _run(bench, PROOF)


def _run(bench, size):
    paths = Paths(bench)
    model = configure(bench)
    effects = []
    count = _reject(bench, paths, size, effects)
    table = cases(size, paths)
    for case in (*table, *SLOW, BROKEN, STAYS):
        _install(bench, paths, case.plugin, case)
    for name in CHANGES:
        _install(bench, paths, f"org.hostile.changed-{name}", Case(f"changed-{name}"))
    _install(bench, paths, _GOOD, Case("good", permissions=READ))
    keys = {name: _KEY + secrets.token_hex(8) for name in _SECRETS}
    run = _Run(bench, paths, model, PluginClient(bench, **keys), effects)
    run.keys = list(keys.values())
    run.change()
    run.disable(STAYS)
    before = paths.snapshot()
    threads = {case: run.begin(case) for case in SLOW}
    for case in table:
        run.play(case)
        run.poke_broken()
    for case, thread in threads.items():
        run.require_late(case, thread)
    run.require_broken()
    run.require_gone(STAYS)
    run.require_quiet([*table, *SLOW])
    effects += [f"the files changed: {it}" for it in _differences(before, paths.snapshot())]
    run.close()
    effects += [f"planted: {it}" for it in paths.planted()]
    count += len(table) + len(SLOW) + len(CHANGES) + 2
    print(f"figure: {count} cases of hostile plugins, {len(effects)} effects")
    require(not effects, "; ".join(effects))


def _install(bench, paths, plugin, case):
    folder = paths.plugins / case.name
    write_plugin(folder, plugin, PROGRAM, [case.name, *case.words], case.permissions, case.parts)
    if plugin == _GOOD or case.name.startswith("changed-"):
        # Its health must have its own id.
        text = (folder / "main.py").read_text()
        (folder / "main.py").write_text(text.replace('f"org.hostile.{sys.argv[1]}"', json.dumps(plugin)))
    if case.name == "zip":
        with zipfile.ZipFile(folder / "files.zip", "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("../../outside/file", "planted")
            file.writestr("zeros", bytes(10 << 20))
    add(bench, folder)


def _reject(bench, paths, size, effects):
    """Installs what is rejected. Returns how many there are."""
    folder = paths.plugins / "rejected"
    _install(bench, paths, _GOOD, Case("rejected-good"))
    config = (bench.server_home / "config.toml").read_text()
    rejected = rejections(size)
    for name, change, expected in rejected:
        write_plugin(folder, "org.hostile.x", PROGRAM, ["x"])
        change(folder, paths)
        code, text = raddle(bench, "add", folder)
        if code != 1 or expected not in text or "panicked" in text:
            effects.append(f"{name}: {code}, {text[-500:]!r}")
        if ESCAPES.search(text):
            effects.append(f"{name}: the error is {text!r}")
        shutil.rmtree(folder)
    if (bench.server_home / "config.toml").read_text() != config:
        effects.append("a rejected plugin is in the configuration")
    code, text = raddle(bench, "remove", _GOOD)
    require_equal(f"the exit code of the removal ({text})", code, 0)
    return len(rejected)


def _differences(before, after):
    (files, own), (files_after, own_after) = before, after
    changed = {it for it in files.keys() | files_after.keys() if files.get(it) != files_after.get(it)}
    return sorted(changed) + ["the configuration"] * (own != own_after)


class _Run:
    """The server with all plugins, and the effects that were found."""

    def __init__(self, bench, paths, model, client, effects):
        self._bench = bench
        self._paths = paths
        self._model = model
        self._client = client
        self._effects = effects
        #: Keys in the environment of the server.
        self.keys = []
        #: The thread of each case.
        self._threads = {}
        client.new_thread(bench)
        self._broken_thread = client.thread
        self._require_others("the start")

    def _require_others(self, what):
        """The plugin that behaves answers, and an ordinary turn ends."""
        client = self._client
        item = client.call_tool(tool_name(_GOOD))
        found = item and (item["status"], text_of(item))
        require_equal(f"the good plugin after {what}", found, ("completed", "done"))
        turn = client.turn("hello")
        require_equal(f"an ordinary turn after {what}", (turn.status, turn.kinds[-1]), ("completed", "agentMessage"))

    def _collect(self, what, act):
        """Runs a part of a case. Its failure is an effect, and the others go on."""
        try:
            act()
        except Failure as failure:
            self._effects.append(f"{what}: {failure}")

    def change(self):
        """Changes the files of running plugins, which then do not run until they are trusted again."""
        for name, change in CHANGES.items():
            self._collect(f"changed {name}", lambda name=name, change=change: self._change(name, change))

    def _change(self, name, change):
        client, tool = self._client, tool_name(f"org.hostile.changed-{name}")
        client.new_thread(self._bench)
        item = client.call_tool(tool)
        require_equal("the call before the change", (item["status"], text_of(item)), ("completed", "done"))
        change(self._paths.plugins / f"changed-{name}", self._paths)
        item = client.call_tool(tool)
        require(item is None, f"a changed plugin was called: {item}")
        output = self._model.given()[-1]
        require("does not run: " in output, f"the model read {output!r}")
        gone = wait_until(lambda: not running(f"changed-{name}", self._paths))
        require(gone, "the process of a changed plugin goes on")
        self._require_others(f"a change of {name}")
        # Each turn would compare them again.
        for path in (self._paths.plugins / f"changed-{name}").glob("[0-9]*"):
            path.unlink()

    def begin(self, case):
        """Starts the turn of a case in a thread of its own, and returns the thread."""
        self._threads[case.plugin] = self._client.new_thread(self._bench)
        self._client.begin(tool_name(case.plugin))
        return self._client.thread

    def play(self, case):
        self._collect(case.name, lambda: self._play(case))
        self._collect(case.name, lambda: self._require_others(case.name))

    def _play(self, case):
        client = self._client
        client.action = case.action
        asked = len(client.questions)
        thread = client.new_thread(self._bench)
        self._threads[case.plugin] = thread
        for number in range(case.calls):
            if case.status == "interrupted":
                self._interrupt(case)
                continue
            item = client.call_tool(tool_name(case.plugin))
            require(item, "the call was refused")
            self._require_item(case, item, f"call {number + 1}")
        questions = client.questions[asked:]
        require_equal("the questions", len(questions), case.questions)
        for question in questions:
            expected = (case.plugin, thread)
            require_equal("who asks", (question["serverName"], question["threadId"]), expected)
            message = question["message"]
            require(not ESCAPES.search(message), f"the question is {message!r}")

    def _interrupt(self, case):
        """Stops a turn whose call hangs. It ends, and so does the call."""
        client = self._client
        client.begin(tool_name(case.plugin))
        message = client.until(EVENT, "hook/started")
        if message["method"] == EVENT:
            found = (message["params"]["pluginId"], message["params"]["method"])
            require_equal("the event", found, (case.plugin, "hangs"))
        turns = [json.loads(it) for it in client.lines if '"turn/started"' in it]
        client.interrupt(turns[-1]["params"]["turn"]["id"])
        turn = client.end()
        require_equal("how the turn ended", turn.status, "interrupted")
        item = call_of(turn)
        require(not item or item["status"] == "failed", f"the item is {json.dumps(item)[:1000]}")

    def _require_item(self, case, item, what):
        shown = json.dumps(item)
        require(re.fullmatch(case.status, item["status"]), f"{what}: the item is {shown[:1000]}")
        text = text_of(item)
        require(re.search(case.text, text, re.DOTALL), f"{what}: the text is {text[:1000]!r}")
        # Results are for the model, and clients show errors.
        is_plain = item["status"] != "failed" or not ESCAPES.search(text)
        require(is_plain, f"{what}: the error is {text[:1000]!r}")
        require("forged" not in shown, f"{what}: a forged answer counted")
        require(len(shown) < _ITEM_BYTES_MAX, f"{what}: the item has {len(shown)} bytes")

    def require_late(self, case, thread):
        """Reads to the end of a turn that began before others."""

        def ended():
            turn = Turn()
            for line in self._client.lines:
                if thread in line and turn.hear(json.loads(line)):
                    return turn
            return None

        def judge():
            while not (turn := ended()):
                self._client.until("turn/completed")
            self._require_item(case, call_of(turn), "the call")

        self._collect(case.name, judge)

    def poke_broken(self):
        """Calls the plugin that dies each time. Its failures are counted by the server."""
        if self._warnings():
            return
        client = self._client
        client.thread = self._broken_thread
        call = lambda: client.call_tool(tool_name(BROKEN.plugin))
        self._collect(BROKEN.name, lambda: self._require_item(BROKEN, call(), "a call"))

    def _warnings(self):
        return self._client.stderr().count("a plugin has failed too often")

    def require_broken(self):
        """After five failures it is off, which the log says once."""

        def off():
            self.poke_broken()
            return self._warnings()

        def judge():
            require(wait_until(off), "the plugin that dies is not off")
            for _ in range(3):
                item = self._client.call_tool(tool_name(BROKEN.plugin))
                wait = re.search(r"can be started again in (\d+) s", text_of(item))
                require(wait and int(wait.group(1)) > 60, f"the error is {text_of(item)!r}")
            require_equal("the warnings", self._warnings(), 1)

        self._collect("the breaker", judge)

    def disable(self, case):
        """Disables a plugin that runs. The next turn stops it."""

        def judge():
            self._play(case)
            require(running(case.name, self._paths), f"{case.name} does not run")
            code, text = raddle(self._bench, "disable", case.plugin)
            require_equal(f"the exit code of disabling ({text})", code, 0)
            self._require_others("a plugin was disabled")

        self._collect(f"disabling {case.name}", judge)

    def require_gone(self, case):
        gone = wait_until(lambda: not running(case.name, self._paths), 30)
        self._collect(f"disabling {case.name}", lambda: require(gone, "its process goes on"))

    def require_quiet(self, table):
        """No client and no model received what a plugin forged, and no output is larger than its limit."""
        client, effects = self._client, self._effects
        for line in client.lines:
            if "forged" not in line:
                continue
            message = json.loads(line)
            params = message.get("params", {})
            owner = self._threads.get(params.get("pluginId"))
            if message.get("method") != EVENT or not owner or params["threadId"] != owner:
                effects.append(f"a client received {line[:500]}")
        asked = [json.loads(it).get("method") for it in client.lines if '"id"' in it and '"method"' in it]
        others = {it for it in asked if it and "/request" in it and it != "mcpServer/elicitation/request"}
        effects += [f"a client was asked: {it}" for it in others]
        for body in self._model.bodies():
            text = json.dumps(body)
            if len(text) >= _BODY_BYTES_MAX:
                effects.append(f"a model call has {len(text)} bytes")
            if "forged" in text:
                effects.append(f"a model read {text[text.index('forged') - 300:][:600]}")
        peak = client.peak_memory_kib()
        if peak >= _MEMORY_KIB_MAX:
            effects.append(f"the peak memory was {peak} KiB")
        effects += self._leaks()
        for case in table:
            code, text = raddle(self._bench, "logs", case.plugin, "--lines", "1000000")
            if code or len(text) > _PLUGIN_LOG_BYTES_MAX or ESCAPES.search(text):
                effects.append(f"the log of {case.name} ({code}) has {len(text)} bytes: {text[-300:]!r}")

    def _leaks(self):
        """Returns the places that have a key of the server. A plugin may have been given one, and may have sent it to
        the clients of its own call."""
        places = {"the log of the server": self._client.stderr(), "a model call": json.dumps(self._model.bodies())}
        for path in self._bench.server_home.rglob("*"):
            if path.is_file():
                places[str(path)] = path.read_bytes().decode(errors="replace")
        return [f"{place} has a key" for place, text in places.items() if any(it in text for it in self.keys)]

    def close(self):
        """Ends the server. Nothing that a plugin started is left."""
        self._client.leave()
        # The mock is the only process that still runs.
        if not wait_until(lambda: len(self._bench.processes()) == 1):
            self._effects.append(f"left behind: {self._bench.processes()}")
        if not wait_until(lambda: not marked(self._paths.mark)):
            self._effects.append(f"left behind and hidden: {marked(self._paths.mark)}")
        log = len(self._client.stderr())
        if log > _LOG_BYTES_MAX:
            self._effects.append(f"the log has {log} bytes")


CHECKS = {
    "plugin-hostile": beside_others,
}
#: With a line of 1 GiB and a folder of a million files.
PROOFS = {
    "plugin-hostile-full": beside_others_at_full_size,
}
