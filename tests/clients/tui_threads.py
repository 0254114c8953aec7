"""Threads in the stock terminal client, and their state after a restart of the server."""

import re

from harness import require, require_equal, wait_until
from mock_model import MODEL, begun, held, says
from recorder import NO_SERVER
from tui_client import EMPTY_PROMPT
from tui_session import ANSWER, PROMPT, TITLE, Session

_WOOL = ("wool", says("from sheep"))
_SILK = ("silk", says("from worms"))


def rename(bench):
    """The client requests a title in an ephemeral thread; the user sets another."""
    session = Session(bench, [_WOOL])
    client = session.begin()
    starts = [call for call in client.record.calls() if call.method == "thread/start"]
    (hidden,) = [call.result["thread"]["id"] for call in starts if call.params["ephemeral"]]
    client.call("thread/name/set", name=TITLE)
    # The client requests a title to offer, and cancels that when the user is faster.
    client.enter("/rename")
    client.terminal.wait_for("Suggested from this conversation")
    client.terminal.press("C-u")
    client.terminal.enter("Spinning")
    client.terminal.wait_for("· Spinning")
    client.wait_for_told("thread/name/updated", count=2)
    client.told().require_end(["answer to thread/name/set", "thread/name/updated"])
    client.turn("what is wool?", "from sheep")
    client.enter("/resume")
    client.terminal.wait_for("Resume a previous session")
    client.terminal.wait_for("Spinning")
    listed = client.call("thread/list").result["data"]
    require_equal("what is listed", [it["name"] for it in listed], ["Spinning"])
    require(hidden not in [it["id"] for it in listed], "the thread for the name is listed")
    client.terminal.press("Escape")
    client.require_shown("› what is wool?", "• from sheep")
    session.close(client)


def new(bench):
    """A new thread in the same client has no history of the first."""
    session = Session(bench, [_WOOL])
    client = session.begin()
    first = client.thread
    client.enter("/new")
    client.call("thread/unsubscribe", threadId=first)
    client.terminal.wait_for(EMPTY_PROMPT)
    require(wait_until(lambda: ANSWER not in client.terminal.screen()), "the old text is shown")
    client.first_turn("what is wool?", "from sheep")
    require(client.thread != first, "the thread is the old one")
    require_equal("the model's input", session.model.asked()[-1], [("user", "what is wool?")])
    client.require_shown("› what is wool?", "• from sheep")
    session.close(client)


def fork(bench):
    """The same history in a new thread; its turns do not appear in the first."""
    session = Session(bench, [_WOOL, _SILK])
    client = session.begin()
    first = client.thread
    client.enter("/fork")
    client.terminal.wait_for("• Fork created.")
    forked = client.call("thread/fork").result["thread"]
    require_equal("where it comes from", forked["forkedFromId"], first)
    client.turn("what is wool?", "from sheep")
    require_equal("the thread of the turn", client.thread, forked["id"])
    said = [("user", PROMPT), ("assistant", ANSWER), ("user", "what is wool?")]
    require_equal("the model's input", session.model.asked()[-1], said)
    client.require_shown(
        *(f"• Thread forked from {TITLE} ({first})", f"› {PROMPT}", f"• {ANSWER}"),
        *("› what is wool?", "• from sheep"),
    )
    other = session.open("resume", first)
    other.turn("what is silk?", "from worms")
    said = [("user", PROMPT), ("assistant", ANSWER), ("user", "what is silk?")]
    require_equal("the model's input", session.model.asked()[-1], said)
    session.close(client, other)


def resume(bench):
    _resumes(bench)


def resume_over_unix(bench):
    _resumes(bench, unix=True)


def _resumes(bench, **carrier):
    """Another process shows the history, and continues."""
    session = Session(bench, [_WOOL, _SILK], **carrier)
    client = session.begin()
    client.turn("what is wool?", "from sheep")
    thread = client.thread
    client.quit()
    client.terminal.wait_for(f"resume {thread}")

    again = session.open("resume", thread)
    before = [f"› {PROMPT}", f"• {ANSWER}", "› what is wool?", "• from sheep"]
    again.require_shown(*before)
    again.terminal.wait_for(f"· {TITLE}")
    again.turn("what is silk?", "from worms")
    require_equal("the thread", again.thread, thread)
    again.require_shown(*before, "› what is silk?", "• from worms")
    said = [
        *(("user", PROMPT), ("assistant", ANSWER)),
        *(("user", "what is wool?"), ("assistant", "from sheep"), ("user", "what is silk?")),
    ]
    require_equal("the model's input", session.model.asked()[-1], said)
    session.close(again)


def two_clients(bench):
    """A second client joins during the first one's turn: it shows the text so far, and interrupts the turn."""
    session = Session(bench, [("yarn", begun("spun twice")), _WOOL])
    one = session.begin()
    one.enter("what is yarn?")
    one.terminal.wait_for("• spun")
    two = session.open("resume", one.thread)
    before = [f"› {PROMPT}", f"• {ANSWER}", "› what is yarn?", "• spun"]
    two.require_shown(*before)
    two.terminal.press("Escape")
    two.call("turn/interrupt")
    for client in (one, two):
        client.terminal.wait_for("■ Conversation interrupted")
    one.turn("what is wool?", "from sheep")
    for client in (one, two):
        client.require_shown(*before, "› what is wool?", "• from sheep")
    session.close(one, two)


def picker(bench):
    """`/resume` lists the threads by name; the chosen one is shown, and continues."""
    session = Session(bench, [_WOOL, _SILK])
    client = session.begin()
    first = client.thread
    client.enter("/rename Weaving")
    client.terminal.wait_for("· Weaving")
    client.enter("/new")
    client.call("thread/unsubscribe", threadId=first)
    client.first_turn("what is wool?", "from sheep")
    client.enter("/resume")
    client.terminal.wait_for("Resume a previous session")
    client.terminal.wait_for("Weaving")
    require_equal("the rows", _rows(client), [f"› {TITLE}", "Weaving"])
    client.terminal.press("Down")
    chosen = wait_until(lambda: _rows(client) == [TITLE, "› Weaving"])
    require(chosen, f"the rows are {_rows(client)}")
    client.terminal.press("Enter")
    client.require_shown(f"› {PROMPT}", f"• {ANSWER}")
    client.terminal.wait_for("· Weaving")
    client.turn("what is silk?", "from worms")
    require_equal("the thread", client.thread, first)
    said = [("user", PROMPT), ("assistant", ANSWER), ("user", "what is silk?")]
    require_equal("the model's input", session.model.asked()[-1], said)
    session.close(client)


def _rows(client):
    """Returns the names in the list, the chosen one marked."""
    row = re.compile(r"^ *(› )? *(?:now|\d+\w ago) +(.*)$", re.MULTILINE)
    return [f"{mark}{name}" for mark, name in row.findall(client.terminal.screen())]


def model(bench):
    """`/model` lists the server's models; the choice applies to the next turn and is stored."""
    session = Session(bench, [_WOOL])
    client = session.begin()
    client.enter("/model")
    client.terminal.wait_for(f"› 1. {MODEL} (current)")
    client.terminal.press("Enter")
    client.terminal.wait_for("3. High")
    client.terminal.press("3")
    client.terminal.wait_for(f"• Model changed to {MODEL} high")
    require_equal("the change", client.call("thread/settings/update").params["effort"], "high")
    client.call("config/batchWrite")
    kept = (bench.server_home / "config.toml").read_text()
    require('model_reasoning_effort = "high"' in kept, f"the file does not hold it: {kept!r}")
    client.turn("what is wool?", "from sheep")
    require_equal("the reasoning effort", session.model.efforts(), [None, "high"])
    client.terminal.wait_for(f"{MODEL} high")
    session.close(client)


def reconnect(bench):
    """The server is killed during a turn and restarted: the client reconnects, and shows the turn."""
    session = Session(bench, [("yarn", held("spun twice")), _WOOL])
    client = session.begin()
    thread = client.thread
    client.enter("what is yarn?")
    session.model.wait_until_held()
    session.server.kill()
    client.terminal.wait_for("Reconnecting to server")
    session.model.wait_until_left()
    session.restart()
    client.call("thread/resume")
    require(
        wait_until(lambda: "Reconnecting to server" not in client.terminal.screen()),
        "the client did not reconnect",
    )
    client.record.forget(NO_SERVER)
    session.model.wait_until_held()
    session.model.release()
    before = [f"› {PROMPT}", f"• {ANSWER}", "› what is yarn?", "• spun twice"]
    client.require_shown(*before)
    client.turn("what is wool?", "from sheep")
    require_equal("the thread", client.thread, thread)
    client.require_shown(*before, "› what is wool?", "• from sheep")
    said = [("user", PROMPT), ("assistant", ANSWER), ("user", "what is yarn?")]
    _, first, again, last = session.model.asked()
    require_equal("the requests before the restart", first, said)
    require_equal("the repeated requests", again, said)
    more = [("assistant", "spun twice"), ("user", "what is wool?")]
    require_equal("the later requests", last, [*said, *more])
    session.close(client)


CHECKS = {
    "tui-rename": rename,
    "tui-new": new,
    "tui-fork": fork,
    "tui-resume": resume,
    "tui-resume-unix": resume_over_unix,
    "tui-two-clients": two_clients,
    "tui-picker": picker,
    "tui-model": model,
    "tui-reconnect": reconnect,
}
