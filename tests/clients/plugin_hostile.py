"""Hostile plugins: what they may do, and what must not happen to anything else.

All plugins of the tables are installed beside each other, together with one that behaves. After each case the tool of
that plugin is called, and an ordinary turn is run, so that a case which harms others is found. An effect is anything
that a case does beyond its own call.
"""

import json
import os
import re
import secrets
import shutil
import socket
import socketserver
import zipfile
from dataclasses import dataclass
from pathlib import Path

from harness import Failure, require, require_equal, wait_until
from plugin_client import EVENT, PluginClient, add, call_of, configure, raddle, text_of, tool, tool_name, write_plugin
from stdio_client import Turn

PROGRAM = Path(__file__).with_name("plugin_hostile_program.py")
_GOOD = "org.good"
#: The part of a key that the hostile program searches for.
_KEY = "planted-key-"
_SECRETS = ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "RADDLE_SOCKET_TOKEN"]
_READ = ("workspace.read",)
#: Questions of one call.
_ASKED_MAX = 32
#: Bytes of an item, a model call, the log of the server and that of a plugin, however much a plugin sends.
_ITEM_BYTES_MAX = 512 << 10
_BODY_BYTES_MAX = 256 << 10
_LOG_BYTES_MAX = 8 << 20
_PLUGIN_LOG_BYTES_MAX = 3 << 20
#: Peak memory of the process, in KiB: a few messages of the largest size, for all plugins together.
_MEMORY_KIB_MAX = 512 << 10
#: What a terminal or a reader could be misled by.
ESCAPES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Size:
    """The size of a run: MiB of a line and of a stderr, and files of a folder."""

    line: int
    stderr: int
    files: int


_CI, _PROOF = Size(64, 7, 5_001), Size(1024, 32, 1_000_000)


@dataclass(frozen=True)
class Case:
    """An installed plugin, and what must be observed of calls of its tool."""

    name: str
    #: A regular expression for the status of the item, or `interrupted`: the client stops the turn.
    status: str = "completed"
    #: A regular expression for the text of the result, or of the error.
    text: str = "done"
    calls: int = 1
    words: tuple = ()
    permissions: tuple = ()
    parts: tuple = (tool(),)
    #: Questions that reach the client.
    questions: int = 0

    @property
    def plugin(self):
        return f"org.hostile.{self.name}"


_UNHEALTHY = r"does not start: plugin/health failed: "
_NOT_IN_TIME = _UNHEALTHY + "the plugin did not respond within 10 s"
_ENDED = r"closed the connection|its process ended|its process closed"


def _hook(event="PreToolUse", matcher=".*"):
    return f'[[contributions.hooks]]\nevent = "{event}"\nmatcher = "{matcher}"\nmethod = "hook"\n'


def _cases(size, paths):
    own_hook = [(tool(), _hook(matcher=f"{tool_name(f'org.hostile.{it}')}.*")) for it in _HOOKED]
    return [
        Case("garbage", calls=2),
        Case("line-ends", text="^done$", calls=2),
        Case("long-line", words=(size.line,)),
        Case("deep", "failed", "the result cannot be read"),
        Case("nested"),
        Case("not-numbers", "failed", "the result cannot be read"),
        Case("numbers"),
        Case("identifiers", calls=2),
        Case("drip"),
        Case("half", "interrupted"),
        Case("duplicate-ids", text="^done$", calls=3),
        Case("unknown-ids", text="^done$", calls=3),
        Case("both", "failed", "it failed", calls=2),
        Case("errors", "failed", "error", calls=4),
        Case("huge-error", "failed", "it failed"),
        Case("huge-result", text=r"x\n\[… \d+ bytes are left out …\]\nx"),
        Case("too-long-result", "interrupted"),
        Case("escapes"),
        Case("escapes-of-errors", "failed", "it failed"),
        Case("closes-stdin"),
        Case("silent", "interrupted"),
        Case("flood"),
        Case("huge-events"),
        Case("stderr", words=(size.stderr,)),
        Case("calls-unread", "failed", _ENDED),
        Case("calls-beyond", text="^done, 0 approved$", permissions=_READ, questions=_ASKED_MAX),
        Case("storm", text="^done, 0 approved$", permissions=_READ, questions=_ASKED_MAX),
        Case("spoofs", text="^done, 0 approved$", words=_NAMES, permissions=_NAMES, questions=len(_NAMES)),
        Case("imitations"),
        Case("methods-of-clients", text=re.escape("granted []")),
        Case("undeclared", text=re.escape("granted []"), permissions=_READ, questions=0),
        Case("other-calls", text=re.escape("granted []"), permissions=_READ),
        Case("model-events"),
        Case("environment", text=re.escape("found []")),
        Case("processes", text=re.escape("found []")),
        Case("descriptors", text=re.escape("found []")),
        # A tmpfs of its own.
        Case("writes", text=r"found \[('/dev/shm')?\]", words=(paths.canary, *paths.closed)),
        Case("changes", text=re.escape("found []"), words=tuple(paths.files)),
        Case("reads", text=re.escape("found []"), words=tuple(paths.hidden)),
        Case("connects", text=re.escape("found []"), words=(paths.port, paths.abstract)),
        Case("kills", "completed|failed", "."),
        Case("forks", words=(paths.mark,)),
        Case("orphans", "failed", _ENDED, words=(paths.mark,)),
        Case("exits", "failed", _ENDED, calls=2),
        Case("crashes", "failed", _ENDED),
        Case("stops", "interrupted"),
        Case("closes-stdout", "interrupted"),
        Case("hook-hangs", "interrupted", parts=own_hook[0]),
        Case("hook-of-garbage", parts=own_hook[1]),
        Case("hook-of-text", parts=own_hook[2]),
        Case("zip"),
    ]


_HOOKED = ["hook-hangs", "hook-of-garbage", "hook-of-text"]
#: Permissions whose names are made to be misread in a question.
_NAMES = ("secrets:\u202eYEK", "secrets:A\u200b\u2066B", f"secrets:{'x' * 190}")
#: Cases that last as long as the time limits of a start. They begin before all others.
_SLOW = [
    Case("health-of-another", "failed", _UNHEALTHY),
    Case("health-of-another-version", "failed", _UNHEALTHY),
    Case("unwell", "failed", _UNHEALTHY),
    Case("health-fails", "failed", _UNHEALTHY + ".*not well"),
    Case("health-hangs", "failed", _NOT_IN_TIME),
    Case("health-drips", "failed", _NOT_IN_TIME),
    Case("babbles", "failed", _NOT_IN_TIME),
]
#: Ignores `plugin/shutdown` and all signals that it can.
_STAYS = Case("stays")
#: Is called again and again, until it is off.
_BROKEN = Case("dies-at-health", "failed", "licence|failed before")


def _append(path, text):
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def _link_program(folder, paths):
    program = folder / "main.py"
    shutil.copyfile(program, paths.outside / "main.py")
    program.unlink()
    program.symlink_to(paths.outside / "main.py")


def _replace_folder(folder, _):
    moved = folder.with_name(f"{folder.name}-moved")
    folder.rename(moved)
    shutil.copytree(moved, folder)
    _append(folder / "main.py", "\n")


def _grow(folder, _):
    for number in range(_CI.files):
        (folder / f"{number}").touch()


#: Changes after the files were trusted. The plugin does not run.
_CHANGES = {
    "program": lambda folder, _: _append(folder / "main.py", "\n# changed\n"),
    "manifest": lambda folder, _: _append(folder / "plugin.toml", 'x = "y"\n'),
    "hidden": lambda folder, _: (folder / ".hidden").touch(),
    "mode": lambda folder, _: (folder / "main.py").chmod(0o777),
    "linked": _link_program,
    "replaced": _replace_folder,
    "grown": _grow,
}


def _raw_manifest(data):
    return lambda folder, _: (folder / "plugin.toml").write_bytes(data)


def _pipe(folder, _):
    os.mkfifo(folder / "pipe")


def _deep_folders(folder, _):
    folder.joinpath(*["x"] * 40).mkdir(parents=True)


def _link_out(folder, paths):
    (folder / "out").symlink_to(paths.outside)


_HEAD = b'id = "org.hostile.x"\nversion = "1"\nentrypoint = ["python3", "main.py"]\n'


def _rejections(size):
    """Returns what is rejected when it is installed: a name, a change of a folder, and a part of the error."""

    def files(folder, _):
        for number in range(size.files):
            (folder / f"{number}").touch()

    def with_tool(lines):
        return _raw_manifest(_HEAD + b'[[contributions.tools]]\ndescription = "Acts."\n' + lines)

    def with_schema(schema):
        return with_tool(b'name = "x"\nmethod = "x"\ninput_schema = ' + schema + b"\n")

    wide = b", ".join(b'p%d = { type = "string" }' % it for it in range(20_000))
    return [
        ("a folder of files", files, "files and folders"),
        ("a link that leads out", _link_out, "leads out"),
        ("a program behind a link", _link_program, "leads out"),
        ("a pipe", _pipe, "pipe"),
        ("folders inside each other", _deep_folders, "folders"),
        ("no text", _raw_manifest(_HEAD + b"\xff\xfe"), "cannot read"),
        ("NUL", _raw_manifest(_HEAD + b"\x00"), "not valid TOML"),
        ("an escape in the version", _raw_manifest(_HEAD.replace(b'"1"', b'"1\\u001b[2J"')), "control characters"),
        ("an id that is a path", _raw_manifest(_HEAD.replace(b"org.hostile.x", b"../../evil.x")), "`id`"),
        ("the id of another", _raw_manifest(_HEAD.replace(b"hostile.x", b"good")), "a plugin with the id"),
        ("an unknown permission", _raw_manifest(b'permissions = ["*"]\n' + _HEAD), "unknown permission"),
        ("a schema that is none", with_schema(b'"x"'), "input_schema"),
        ("a schema of no object", with_schema(b'{ type = "string" }'), "input_schema"),
        ("a long schema", with_schema(b'{ type = "object", title = "%s" }' % (b"x" * 17_000)), "longer than"),
        ("an enormous schema", with_schema(b'{ type = "object", properties = { %s } }' % wide), "longer than"),
        ("a name with two parts", with_tool(b'name = "a__b"\nmethod = "x"\n'), "name"),
        ("a tool of the contract", with_tool(b'name = "x"\nmethod = "plugin/shutdown"\n'), "method"),
        ("a huge description", _raw_manifest(_HEAD + tool(description="x" * 5_000).encode()), "description"),
        ("too many tools", _raw_manifest(_HEAD + "".join(tool(f"t{it}") for it in range(33)).encode()), "than 32"),
    ]


class _Paths:
    """The places that no plugin may reach, and the canaries in them."""

    def __init__(self, bench):
        self.bench = bench
        self.outside = bench.folder / "outside"
        self.plugins = bench.folder / "plugins"
        for folder in (self.outside, self.plugins):
            folder.mkdir()
        self.files = [self.outside / "file", bench.workspace / "file", bench.client_home / "file"]
        for file in self.files:
            file.write_text("before\n")
        self.canary = f"planted-{secrets.token_hex(8)}"
        #: A word that finds processes which hide otherwise.
        self.mark = f"0.{secrets.randbits(60)}"
        self.abstract = f"raddle-{secrets.token_hex(8)}"
        own = [self.outside, bench.server_home, bench.client_home, bench.server_folder, bench.workspace]
        shared = [Path(it) for it in ("/tmp", "/var/tmp", "/dev/shm", "/", "/etc", "/root", "/usr/local/bin")]
        self.closed = [*own, bench.folder, self.plugins / "writes", *shared]
        self.hidden = [bench.server_home, bench.server_home / "config.toml", bench.server_home / "rules.toml"]
        self.connections = []
        self._listen()

    def _listen(self):
        paths = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                paths.connections.append(self.client_address)

        class Unix(socketserver.UnixStreamServer):
            pass

        tcp = socketserver.TCPServer(("127.0.0.1", 0), Handler)
        self.port = tcp.server_address[1]
        self.bench.serve(tcp)
        self.bench.serve(Unix(f"\0{self.abstract}", Handler))
        with socket.create_connection(("127.0.0.1", self.port)):
            pass
        require(wait_until(lambda: self.connections), "the listener does not see connections")
        self.connections.clear()

    def snapshot(self):
        """Returns all files that only the check itself may change."""
        bench = self.bench
        folders = [self.outside, self.plugins, bench.workspace, bench.client_home, bench.server_folder]
        files = [it for folder in folders for it in sorted(folder.rglob("*"))]
        stats = {str(it): os.lstat(it) for it in files}
        own = [(bench.server_home / it).read_text() for it in ("config.toml", "rules.toml")]
        return {name: (it.st_mode, it.st_size, it.st_mtime_ns, it.st_nlink) for name, it in stats.items()}, own

    def planted(self):
        """Returns what is on the disk or runs, and should not."""
        found = [str(it) for it in self.closed if Path(it, self.canary).exists()]
        return found + self.connections


def marked(mark):
    """Returns the processes of the machine that have a word among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def cases(bench):
    _run(bench, _CI)


def cases_at_full_size(bench):
    _run(bench, _PROOF)


def _run(bench, size):
    paths = _Paths(bench)
    model = configure(bench)
    effects = []
    count = _reject(bench, paths, size, effects)
    table = _cases(size, paths)
    for case in (*table, *_SLOW, _BROKEN, _STAYS):
        _install(bench, paths, case.plugin, case)
    for name in _CHANGES:
        _install(bench, paths, f"org.hostile.changed-{name}", Case(f"changed-{name}"))
    _install(bench, paths, _GOOD, Case("good", permissions=_READ))
    keys = {name: _KEY + secrets.token_hex(8) for name in _SECRETS}
    run = _Run(bench, paths, model, PluginClient(bench, **keys), effects)
    run.change()
    run.disable(_STAYS)
    before = paths.snapshot()
    threads = {case: run.begin(case) for case in _SLOW}
    for case in table:
        run.play(case)
        run.poke_broken()
    for case, thread in threads.items():
        run.require_late(case, thread)
    run.require_broken()
    run.require_gone(_STAYS)
    run.require_quiet([*table, *_SLOW])
    effects += [f"the files changed: {it}" for it in _differences(before, paths.snapshot())]
    run.close()
    effects += [f"planted: {it}" for it in paths.planted()]
    count += len(table) + len(_SLOW) + len(_CHANGES) + 2
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
    rejections = _rejections(size)
    for name, change, expected in rejections:
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
    return len(rejections)


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
        for name, change in _CHANGES.items():
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
        gone = wait_until(lambda: not _running(f"changed-{name}", self._paths))
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
        call = lambda: client.call_tool(tool_name(_BROKEN.plugin))
        self._collect(_BROKEN.name, lambda: self._require_item(_BROKEN, call(), "a call"))

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
                item = self._client.call_tool(tool_name(_BROKEN.plugin))
                wait = re.search(r"can be started again in (\d+) s", text_of(item))
                require(wait and int(wait.group(1)) > 60, f"the error is {text_of(item)!r}")
            require_equal("the warnings", self._warnings(), 1)

        self._collect("the breaker", judge)

    def disable(self, case):
        """Disables a plugin that runs. The next turn stops it."""

        def judge():
            self._play(case)
            require(_running(case.name, self._paths), f"{case.name} does not run")
            code, text = raddle(self._bench, "disable", case.plugin)
            require_equal(f"the exit code of disabling ({text})", code, 0)
            self._require_others("a plugin was disabled")

        self._collect(f"disabling {case.name}", judge)

    def require_gone(self, case):
        gone = wait_until(lambda: not _running(case.name, self._paths), 30)
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
        for case in table:
            code, text = raddle(self._bench, "logs", case.plugin, "--lines", "1000000")
            if code or len(text) > _PLUGIN_LOG_BYTES_MAX or ESCAPES.search(text):
                effects.append(f"the log of {case.name} ({code}) has {len(text)} bytes: {text[-300:]!r}")

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


def _running(name, paths):
    """Returns the processes of a plugin, by the arguments of its interpreter and its folder."""
    found = []
    for pid in marked(name):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == str(paths.plugins / name):
                found.append(pid)
        except OSError:
            pass
    return found


CHECKS = {
    "plugin-hostile": cases,
}
#: With a line of 1 GiB and a folder of a million files.
PROOFS = {
    "plugin-hostile-full": cases_at_full_size,
}
