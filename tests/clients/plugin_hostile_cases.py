"""The tables of hostile plugins: those that run, those that change, and those that are rejected."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from plugin_client import tool, tool_name

PROGRAM = Path(__file__).with_name("plugin_hostile_program.py")
READ = ("workspace.read",)
#: Questions of one call.
_ASKED_MAX = 32


@dataclass(frozen=True)
class Size:
    """The size of a run: MiB of a line and of a stderr, and files of a folder."""

    line: int
    stderr: int
    files: int


CI, PROOF = Size(64, 7, 5_001), Size(1024, 32, 1_000_000)


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
    #: The client's answer to them.
    action: str = "decline"

    @property
    def plugin(self):
        return f"org.hostile.{self.name}"


_UNHEALTHY = r"does not start: plugin/health failed: "
_NOT_IN_TIME = _UNHEALTHY + "the plugin did not respond within 10 s"
_ENDED = r"closed the connection|its process ended|its process closed"


def _hook(event="PreToolUse", matcher=".*"):
    return f'[[contributions.hooks]]\nevent = "{event}"\nmatcher = "{matcher}"\nmethod = "hook"\n'


def cases(size, paths):
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
        Case("calls-beyond", text="^done, 0 approved$", permissions=READ, questions=_ASKED_MAX),
        Case("storm", text="^done, 0 approved$", permissions=READ, questions=_ASKED_MAX),
        Case("spoofs", text="^done, 0 approved$", words=_NAMES, permissions=_NAMES, questions=len(_NAMES)),
        Case("imitations"),
        Case("methods-of-clients", text=re.escape("granted []")),
        Case("undeclared", text=re.escape("granted []"), permissions=READ, questions=0),
        Case("other-calls", text=re.escape("granted []"), permissions=READ),
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
        *_approved(paths),
    ]


def _approved(paths):
    """Returns the plugins whose permissions the user approves."""
    files, folders = ("workspace.read", "workspace.write"), paths.beside
    ways = [os.path.relpath(it, paths.bench.workspace) for it in folders]
    nothing = re.escape("approved True, read True, found []")
    port = f"network:127.0.0.1:{paths.allowed_port}"
    table = [
        ("dots", nothing, (paths.canary, *ways), files, 2),
        ("absolute", nothing, (paths.canary, *folders), files, 2),
        (
            *("swapped-link", re.escape("approved True, tried True, found [], ") + r"\d\d+ swaps"),
            *((paths.canary, paths.outside), (*files, "command.run"), 3),
        ),
        ("floods-commands", "^approved True$", (paths.mark,), ("command.run",), 1),
        (
            *("tells-secret", re.escape("approved True, has it True, found []")),
            *((), ("secrets:OPENAI_API_KEY",), 1),
        ),
        # The host is approved when the plugin is installed.
        ("other-ports", re.escape("found ['allowed']"), (paths.allowed_port, paths.port), (port,), 0),
    ]
    return [
        Case(name, text=text, words=words, permissions=permissions, questions=questions, action="accept")
        for name, text, words, permissions, questions in table
    ]


_HOOKED = ["hook-hangs", "hook-of-garbage", "hook-of-text"]
#: Permissions whose names are made to be misread in a question.
_NAMES = ("secrets:\u202eYEK", "secrets:A\u200b\u2066B", f"secrets:{'x' * 190}")
#: Cases that last as long as the time limits of a start. They begin before all others.
SLOW = [
    Case("health-of-another", "failed", _UNHEALTHY),
    Case("health-of-another-version", "failed", _UNHEALTHY),
    Case("unwell", "failed", _UNHEALTHY),
    Case("health-fails", "failed", _UNHEALTHY + ".*not well"),
    Case("health-hangs", "failed", _NOT_IN_TIME),
    Case("health-drips", "failed", _NOT_IN_TIME),
    Case("babbles", "failed", _NOT_IN_TIME),
]
#: Ignores `plugin/shutdown` and all signals that it can.
STAYS = Case("stays")
#: Is called again and again, until it is off.
BROKEN = Case("dies-at-health", "failed", "licence|failed before")


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
    for number in range(CI.files):
        (folder / f"{number}").touch()


#: Changes after the files were trusted. The plugin does not run.
CHANGES = {
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


def rejections(size):
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
