"""Changes of files that a client accepts hunk by hunk."""

import json
import sys
from pathlib import Path

from harness import Failure, require, require_equal, run_client
from mock_model import MockModel, patches, says
from stdio_client import StdioClient, Turn
from terminal import Terminal

_PROGRAM = Path(__file__).resolve().parents[2] / "examples/hunks.py"
_LINES_MAX = 60
_ASKED = "item/fileChange/requestApproval"
_CHANGED = {5: "five", 20: "twenty", 35: "thirty-five", 50: "fifty", 65: "sixty-five"}


def _patch(lines):
    sections = "".join(f"@@\n {line - 1}\n-{line}\n+{_CHANGED[line]}\n" for line in lines)
    return f"*** Begin Patch\n*** Update File: numbers\n{sections}*** End Patch\n"


_PATCH = _patch(_CHANGED)


def in_60_lines(bench):
    """Two of five hunks with a comment: the disk, the item, the journal and the model agree."""
    count = len(_PROGRAM.read_text().splitlines())
    require(count <= _LINES_MAX, f"hunks.py has {count} lines, not {_LINES_MAX}")
    model, numbers = _world(bench)
    answers = "y\\nkeep twenty\\n\\n=FIFTY\\n\\n"
    command = ["sh", "-c", f"printf '{answers}' | \"$@\"", "sh", sys.executable, _PROGRAM, bench.raddle, "go"]
    code, out, err = run_client(bench, command, bench.environment())
    require_equal(f"the exit code ({err})", code, 0)
    require_equal("questions", out.count("apply? [y/=TEXT/comment] "), 5)
    require("the change: completed\ndone\n" in out, f"it printed {out!r}")
    expected = _numbers({5: "five", 50: "FIFTY"})
    require_equal("the file", numbers.read_text(), expected)

    (read,) = model.given()
    require("The user accepted 2 of 5 hunks.\n" in read, f"the model read {read!r}")
    for part in (
        "Not applied: ",
        "@@ -20 +20 @@\n-20\n+twenty\nComment of the user: keep twenty\n",
        "@@ -35 +35 @@\n-35\n+thirty-five\n",
        "@@ -50 +50 @@\n-50\n+fifty\nThe user's lines in place of the new ones:\n+FIFTY\n",
        "@@ -65 +65 @@\n-65\n+sixty-five\n",
    ):
        require(part in read, f"{part!r} is missing in {read!r}")
    require("five\n+five" not in read, "the model read of an accepted hunk")

    # Another process reads the item from the journal.
    client = _Client(bench)
    (thread,) = client.call("thread/list", {})["data"]
    turns = client.call("thread/turns/list", {"threadId": thread["id"], "itemsView": "full"})["data"]
    (item,) = (it for it in turns[0]["items"] if it["type"] == "fileChange")
    (change,) = item["changes"]
    lines = [line for line in change["diff"].splitlines() if line[0] in "+-"]
    require_equal("the item", lines, ["-5", "+five", "-50", "+FIFTY"])
    diff = client.call("turn/diff/read", {"threadId": thread["id"], "turnId": turns[0]["id"]})["diff"]
    lines = [line for line in diff["unified"].splitlines() if line[0] in "+-" and line[1:3] not in ("--", "++")]
    require_equal("the diff of the turn", lines, ["-5", "+five", "-50", "+FIFTY"])
    client.leave()


def two_clients(bench):
    """Two clients choose different hunks: the first choice counts, and both learn of it."""
    model, numbers = _world(bench, _PATCH, *[_patch([20, 35, 50, 65])] * 2)
    first, second = _Client(bench), _Client(bench, extensions={})
    second.call("thread/resume", {"threadId": first.thread})
    first.begin()
    asked = first.until(_ASKED)
    stock = second.until(_ASKED)
    require_equal("the members of the stock request", "hunks" in stock["params"], False)
    hunks = asked["params"]["hunks"]
    require_equal("the hunks", [it["newText"] for it in hunks], [f"{it}\n" for it in _CHANGED.values()])
    first.choose(asked, [True, False, False, False, False])
    resolved = [it.until("serverRequest/resolved")["params"]["decision"] for it in (first, second)]
    require_equal("the decisions", resolved, ["acceptHunks"] * 2)
    second.reply(stock, "accept")
    first.choose(asked, [False, True, True, True, True])
    turn = first.end()
    require_equal("the status of the turn", turn.status, "completed")
    require_equal("the file", numbers.read_text(), _numbers({5: "five"}))
    ids = {"threadId": first.thread, "turnId": asked["params"]["turnId"]}
    (file,) = first.call("turn/diff/read", ids)["diff"]["files"]
    require_equal("the id of the hunk in the diff", [it["id"] for it in file["hunks"]], [hunks[0]["id"]])
    # The hunks of no other change, and none at all.
    for decision, expected in (([False] * 4, "declined"), ("unknown", "failed")):
        first.begin()
        asked = first.until(_ASKED)
        if decision == "unknown":
            hunks = [{"id": "0" * 16, "accept": True}]
            first.reply(asked, {"acceptHunks": {"hunks": hunks}})
        else:
            first.choose(asked, decision)
        items = [it for it in first.end().items if it["type"] == "fileChange"]
        require_equal(f"the item after {decision}", [it["status"] for it in items], [expected])
        require_equal("the file", numbers.read_text(), _numbers({5: "five"}))
    require("0 of 4 hunks" in "".join(model.given()), "the model did not read that all hunks were dropped")
    second.leave()
    first.leave()


def changed_meanwhile(bench):
    """The file changes while the user chooses: nothing is written, and the model reads why."""
    model, numbers = _world(bench)
    client = _Client(bench)
    client.begin()
    asked = client.until(_ASKED)
    theirs = numbers.read_text() + "mine\n"
    numbers.write_text(theirs)
    client.choose(asked, [True, False, True, False, False])
    (item,) = (it for it in client.end().items if it["type"] == "fileChange")
    require(item["status"] in ("failed", "declined"), f"the item is {item['status']}")
    require_equal("the file", numbers.read_text(), theirs)
    (read,) = model.given()
    require("no longer what was allowed" in read, f"the model read {read!r}")
    client.leave()


def after_a_kill(bench):
    """The server is killed while the user chooses: another one sends the same hunks again."""
    _, numbers = _world(bench)
    client = _Client(bench)
    client.begin()
    asked = client.until(_ASKED)
    client.kill()
    other = _Client(bench)
    other.call("thread/resume", {"threadId": client.thread})
    again = other.until(_ASKED)
    require_equal("the request", again["params"], asked["params"])
    other.thread = client.thread
    other.choose(again, [False, False, False, False, True])
    require_equal("the status of the turn", other.end().status, "completed")
    require_equal("the file", numbers.read_text(), _numbers({65: "sixty-five"}))
    other.leave()


def on_a_terminal(bench):
    """`raddle exec` asks about each hunk, and splits one."""
    text = _PATCH.replace("@@\n 34\n-35\n+thirty-five\n", "@@\n-33\n+b\n 34\n-35\n+thirty-five\n")
    model, numbers = _world(bench, text)
    terminal = Terminal(bench, [bench.raddle, "exec", "go"], bench.environment())
    terminal.wait_for("yes, always in this session, hunk by hunk, no")
    terminal.enter("h")
    for place, answer in (
        ("hunk 1 of 5, line 5 of ", "y"),
        ("hunk 2 of 5, line 20 of ", "not this one"),
        ("hunk 3 of 5, line 33 of ", "s"),
        ("hunk 3 of 6, line 33 of ", "n"),
        ("hunk 4 of 6, line 35 of ", "y"),
        ("hunk 5 of 6, line 50 of ", "d"),
    ):
        terminal.wait_for(place)
        terminal.enter(answer)
    terminal.wait_for_end()
    require_equal("the file", numbers.read_text(), _numbers({5: "five", 35: "thirty-five"}))
    (read,) = model.given()
    require("Comment of the user: not this one\n" in read, f"the model read {read!r}")


class _Client(StdioClient):
    def __init__(self, bench, extensions=None):
        self.capabilities = {"extensions": {"raddle/hunks": {}} if extensions is None else extensions}
        super().__init__(bench, arguments=["--recovery", "continue"])

    def begin(self):
        self._send("turn/start", {"threadId": self.thread, "input": [{"type": "text", "text": "go"}]})

    def until(self, method):
        for message in self._messages():
            require("error" not in message, f"a response was {message}")
            if message.get("method") == method:
                return message
        raise Failure(f"the server ended before {method}")

    def end(self):
        turn = Turn()
        ended = any(turn.hear(message) for message in self._messages())
        require(ended, "the server ended before the turn did")
        return turn

    def choose(self, asked, accepted):
        hunks = zip(asked["params"]["hunks"], accepted, strict=False)
        decisions = [{"id": hunk["id"], "accept": is_accepted} for hunk, is_accepted in hunks]
        self.reply(asked, {"acceptHunks": {"hunks": decisions}})

    def reply(self, asked, decision):
        self._write({"id": asked["id"], "result": {"decision": decision}})


def _world(bench, *texts):
    """Returns the model, which changes five lines of a file, or patches it with these texts, and the file."""
    turns = [[(None, [patches(text)]), (None, says("done"))] for text in texts or [_PATCH]]
    model = MockModel(bench, [answer for turn in turns for answer in turn])
    model.configure(bench, approval_policy="untrusted", sandbox_mode="workspace-write")
    numbers = bench.workspace / "numbers"
    numbers.write_text(_numbers({}))
    return model, numbers


def _numbers(changed):
    return "".join(f"{changed.get(line, line)}\n" for line in range(1, 71))


CHECKS = {
    "hunks-example": in_60_lines,
    "hunks-two-clients": two_clients,
    "hunks-changed-meanwhile": changed_meanwhile,
    "hunks-killed": after_a_kill,
    "hunks-terminal": on_a_terminal,
}
