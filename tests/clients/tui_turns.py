"""Turns in the stock terminal client: interrupted, steered, compacted."""

from harness import require, require_equal, wait_until
from mock_model import begun, held, says
from tui_session import ANSWER, PROMPT, Session

_USER = ["item/started userMessage", "item/completed userMessage"]
_AGENT = ["item/started agentMessage", "item/agentMessage/delta", "item/completed agentMessage"]
_BEGIN = ["thread/status/changed active", "turn/started inProgress"]
_END = ["thread/tokenUsage/updated", "thread/status/changed idle", "turn/completed completed"]


def interrupt(bench):
    _interrupts(bench)


def interrupt_over_unix(bench):
    _interrupts(bench, unix=True)


def _interrupts(bench, **carrier):
    """Esc during a response, and before one has begun."""
    answers = [
        ("yarn", begun("spun twice")),
        ("linen", held("from flax")),
        ("wool", says("from sheep")),
    ]
    session = Session(bench, answers, **carrier)
    client = session.begin()
    begin = ["answer to turn/start", *_BEGIN, *_USER]
    stopped = ["thread/status/changed idle", "turn/completed interrupted"]

    client.enter("what is yarn?")
    client.terminal.wait_for("• spun")
    client.terminal.press("Escape")
    client.wait_for_told("turn/completed", count=3)
    client.told().require_end([
        *(*begin, *_AGENT[:2], "answer to turn/interrupt", _AGENT[2], *stopped),
    ])
    client.terminal.wait_for("■ Conversation interrupted")

    client.enter("what is linen?")
    session.model.wait_until_held()
    client.terminal.press("Escape")
    client.wait_for_told("turn/completed", count=4)
    client.told().require_end([*begin, "answer to turn/interrupt", *stopped])
    session.model.wait_until_left()
    # The client may not have processed the end yet: until it shows it, it adds typed input to that turn.
    client.terminal.wait_until_shown("■ Conversation interrupted", times=2)

    client.turn("what is wool?", "from sheep")
    require_equal(
        "the model's input",
        session.model.asked()[-1],
        [
            *(("user", PROMPT), ("assistant", ANSWER)),
            *(("user", "what is yarn?"), ("assistant", "spun ")),
            *(("user", "what is linen?"), ("user", "what is wool?")),
        ],
    )
    client.require_shown(
        *(f"› {PROMPT}", f"• {ANSWER}", "› what is yarn?", "• spun", "› what is linen?"),
        *("› what is wool?", "• from sheep"),
    )
    session.close(client)


def steer(bench):
    """Input during a response belongs to the same turn, and reaches the model."""
    session = Session(bench, [("yarn", held("spun twice")), ("wool", says("from sheep"))])
    client = session.begin()
    client.enter("what is yarn?")
    session.model.wait_until_held()
    client.enter("and what is wool?", steers=True)
    client.call("turn/steer")
    session.model.release()
    client.terminal.wait_for("• from sheep")
    client.wait_for_told("turn/completed", count=3)
    client.told().require_end([
        *("answer to turn/start", *_BEGIN, *_USER),
        *("answer to turn/steer", *_USER),
        *(*_AGENT, "thread/tokenUsage/updated", *_AGENT, *_END),
    ])
    said = [("user", PROMPT), ("assistant", ANSWER), ("user", "what is yarn?")]
    _, first, second = session.model.asked()
    require_equal("the first request", first, said)
    steered = [*said, ("assistant", "spun twice"), ("user", "and what is wool?")]
    require_equal("the second request", second, steered)
    client.require_shown("› what is yarn?", "› and what is wool?", "• spun twice", "• from sheep")
    session.close(client)


def steer_too_late(bench):
    """Input after the end of a turn that the client does not know of yet starts another turn."""
    session = Session(bench, [("yarn", held("spun twice")), ("wool", says("from sheep"))])
    client = session.begin()
    client.enter("what is yarn?")
    session.model.wait_until_held()
    client.wait_for_told("turn/started", count=3)
    client.terminal.wait_for("esc to interrupt")
    client.relay.hold()
    session.model.release()
    client.wait_for_told("turn/completed", count=3)
    client.enter("and what is wool?", steers=True)

    def steered():
        calls = client.record.calls()
        return [call.answers for call in calls if call.method == "turn/steer" and call.answers]

    require(wait_until(steered), "the client did not steer")
    client.relay.let_go()
    client.wait_for_told("turn/completed", count=4)
    ((answer,),) = steered()
    late = "no active turn to steer"
    require_equal("the answer", answer["error"]["message"], late)
    client.require_shown("› what is yarn?", "• spun twice", "› and what is wool?", "• from sheep")
    client.quit(refused=[late])
    session.close()


def compact(bench):
    """The model writes a summary, and continues from it alone."""
    summary = "We spoke of warp."
    session = Session(bench, [("Sum up", says(summary)), ("wool", says("from sheep"))])
    client = session.begin()
    client.enter("/compact")
    client.terminal.wait_for("• Context compacted")
    client.wait_for_told("turn/completed", count=3)
    client.told().require_end([
        *("answer to thread/compact/start", *_BEGIN),
        *("item/started contextCompaction", "item/completed contextCompaction", *_END),
    ])
    client.turn("what is wool?", "from sheep")
    _, summing, after = session.model.asked()
    require_equal("the input of the compaction", summing[:-1], [("user", PROMPT), ("assistant", ANSWER)])
    said = [("user", summary), ("user", "what is wool?")]
    require_equal("the input after the compaction", after, said)
    client.require_shown(f"› {PROMPT}", f"• {ANSWER}", "› what is wool?", "• from sheep")
    session.close(client)


def review(bench):
    """A review with the user's instructions. Its result is shown once, not again at its end."""
    session = Session(bench, [("the knots", says("all are tight")), ("wool", says("from sheep"))])
    client = session.begin()
    client.enter("/review")
    client.terminal.wait_for("4. Custom review instructions")
    client.terminal.press("4")
    client.terminal.wait_for("Type instructions and press Enter")
    client.terminal.enter("look at the knots")
    client.terminal.wait_for("<< Code review finished >>")
    client.wait_for_told("turn/completed", count=3)
    asked = client.call("review/start")
    target = {"type": "custom", "instructions": "look at the knots"}
    require_equal("the target", asked.params["target"], target)
    told = client.told()
    told.require_end([
        *("answer to review/start", *_BEGIN),
        *("item/started enteredReviewMode", "item/completed enteredReviewMode"),
        *(*_AGENT, "thread/tokenUsage/updated"),
        *("item/started exitedReviewMode", "item/completed exitedReviewMode"),
        *_END[1:],
    ])
    (left,) = told.items("exitedReviewMode")
    require_equal("the review", left["review"], "all are tight")
    (_, instructions) = session.model.asked()[-1][-1]
    require("look at the knots" in instructions, f"the model read {instructions!r}")
    client.turn("what is wool?", "from sheep")
    client.require_shown(
        ">> Code review started: look at the knots <<",
        *("• all are tight", "<< Code review finished >>", "› what is wool?", "• from sheep"),
    )
    session.close(client)


CHECKS = {
    "tui-interrupt": interrupt,
    "tui-interrupt-unix": interrupt_over_unix,
    "tui-steer": steer,
    "tui-steer-too-late": steer_too_late,
    "tui-compact": compact,
    "tui-review": review,
}
