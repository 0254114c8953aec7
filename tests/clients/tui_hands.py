"""The agent's work in the stock terminal client: commands, plans, questions, patches."""

from harness import require, require_equal
from mock_model import calls, held, says
from tui_session import Session

_BEGIN = [
    *("answer to turn/start", "thread/status/changed active", "turn/started inProgress"),
    *("item/started userMessage", "item/completed userMessage"),
]
_AGENT = ["item/started agentMessage", "item/agentMessage/delta", "item/completed agentMessage"]
_END = ["thread/tokenUsage/updated", "thread/status/changed idle", "turn/completed completed"]


def command(bench):
    """A command in the sandbox: its output, and its failure."""
    session = Session(bench, [
        ("weave", [calls("exec_command", {"cmd": "echo woven; echo torn >&2; exit 3"})]),
        ("torn", says("it is torn")),
    ])
    client = session.begin()
    client.turn("weave", "it is torn")
    client.require_shown(
        *("• Exited (status 3) echo woven; echo torn >&2; exit 3", "└ woven", "torn"),
        "• it is torn",
    )
    (item,) = client.told().items("commandExecution")
    ended = [item[key] for key in ("status", "exitCode", "aggregatedOutput", "cwd")]
    expected = ["failed", 3, "woven\ntorn\n", str(bench.server_folder)]
    require_equal("the command", ended, expected)
    # The client's thread for a title has no environment.
    require_equal("how often no tool was offered", session.model.tools().count([]), 1)
    session.close(client)


def exploring(bench):
    """The client shows read-only commands as the files that they read."""
    (bench.server_folder / "cloth.txt").write_text("warp\nweft\n")
    lines = {
        "list": ("ls -a", "List ls -a"),
        "read": ("cat cloth.txt", "Read cloth.txt"),
        "seek": ("grep -n weft cloth.txt", "Search weft in cloth.txt"),
    }
    answers = [(said, [calls("exec_command", {"cmd": line})]) for said, (line, _) in lines.items()]
    session = Session(bench, [*answers, ("exited with code 0", says("it is there"))])
    client = session.begin()
    for turns, said in enumerate(lines, start=3):
        client.enter(said)
        client.wait_for_told("turn/completed", count=turns)
        # Input that is typed before the client knows of the turn's end belongs to that turn.
        client.terminal.wait_until_shown("Worked for", times=turns - 1)
    client.terminal.wait_until_shown("• Explored", times=len(lines))
    client.require_shown(*(f"└ {shown}" for _, shown in lines.values()))
    session.close(client)


def plan(bench):
    """The client shows a plan with its steps, the remaining ones first, and as nothing else."""
    steps = [
        {"step": "warp the loom", "status": "completed"},
        {"step": "weave", "status": "in_progress"},
        {"step": "cut the cloth", "status": "pending"},
    ]
    session = Session(bench, [
        ("weave", [calls("update_plan", {"plan": steps})]),
        ("lan", says("as planned")),
    ])
    client = session.begin()
    client.turn("weave", "as planned")
    client.require_shown(
        *("• Updated Plan · 1/3 complete", "└ □ weave", "□ cut the cloth", "✔ warp the loom"),
        "• as planned",
    )
    require("update_plan" not in client.terminal.screen(), "the call is shown beside the plan")
    told = [*_BEGIN, "turn/plan/updated", "thread/tokenUsage/updated"]
    client.told().require_end([*told, *_AGENT, *_END])
    require_equal("the model's input", session.model.given(), ["Plan updated"])
    session.close(client)


def question(bench):
    """The model asks, the user chooses with the keyboard, and the model reads the answer."""
    asked = {
        "id": "colour",
        "header": "Colour",
        "question": "Which colour?",
        "options": [
            {"label": "red", "description": "From madder"},
            {"label": "blue", "description": "From woad"},
        ],
    }
    session = Session(bench, [
        ("dye", [calls("request_user_input", {"questions": [asked]})]),
        ("blue", says("blue it is")),
    ])
    client = session.begin()
    client.enter("dye")
    client.terminal.wait_for("Which colour?")
    client.terminal.wait_for("› 1. red")
    client.terminal.press("Down")
    client.terminal.wait_for("› 2. blue")
    client.terminal.press("Enter")
    client.terminal.wait_for("• blue it is")
    client.wait_for_told("turn/completed", count=3)
    client.require_shown(
        *("• Questions 1/1 answered", "• Which colour?", "answer: blue", "• blue it is"),
    )
    (given,) = session.model.given()
    require("blue" in given, f"the model read {given!r}")
    client.told().require_end([
        *(*_BEGIN, "thread/status/changed waitingOnUserInput", "item/tool/requestUserInput"),
        "thread/tokenUsage/updated",
        *("serverRequest/resolved", "thread/status/changed active"),
        *(*_AGENT, *_END),
    ])
    require("request_user_input" not in client.terminal.screen(), "the call is shown too")
    session.close(client)


def interrupt(bench):
    """Esc while a command runs: it ends, and leaves no process."""
    line = "echo begun; sleep 600 & sleep 600"
    session = Session(bench, [
        ("weave", [calls("exec_command", {"cmd": line})]),
        ("wool", says("from sheep")),
    ])
    client = session.begin()
    client.enter("weave")
    client.terminal.wait_for("└ begun")
    require(_sleepers(bench), "nothing runs")
    client.terminal.press("Escape")
    client.wait_for_told("turn/completed", count=3)
    client.told().require_end([
        *(*_BEGIN, "item/started commandExecution", "thread/tokenUsage/updated"),
        *("item/commandExecution/outputDelta", "answer to turn/interrupt"),
        *("item/completed commandExecution", "thread/status/changed idle"),
        "turn/completed interrupted",
    ])
    require_equal("what still runs", _sleepers(bench), [])
    client.require_shown("› weave", f"• Exited (status 1) {line}", "└ begun")
    client.terminal.wait_for("■ Conversation interrupted")
    client.turn("what is wool?", "from sheep")
    (given,) = session.model.given()
    require("interrupt" in given, f"the model read {given!r}")
    session.close(client)


def shell(bench):
    """The user's own command runs without the sandbox, and the model reads its result."""
    line = "echo spun | tee ../yarn.txt; basename $PWD"
    session = Session(bench, [("wool", says("from sheep"))])
    client = session.begin()
    client.terminal.enter(f"!{line}", shown=line)
    client.wait_for_told("turn/completed", count=3)
    client.require_shown(f"• You ran {line}", "└ spun", bench.server_folder.name)
    client.told().require_end([
        *("answer to thread/shellCommand", *_BEGIN[1:3], "item/started commandExecution"),
        *("item/commandExecution/outputDelta", "item/completed commandExecution", *_END[1:]),
    ])
    (item,) = client.told().items("commandExecution")
    output = f"spun\n{bench.server_folder.name}\n"
    ended = [item[key] for key in ("source", "status", "exitCode", "aggregatedOutput")]
    require_equal("the command", ended, ["userShell", "completed", 0, output])
    require_equal("the file", (bench.folder / "yarn.txt").read_text(), "spun\n")
    client.turn("what is wool?", "from sheep")
    known = [text for _, text in session.model.asked()[-1] if line in text and output in text]
    require_equal("how often the model's input has it", len(known), 1)
    session.close(client)


def terminal(bench):
    """A command that still runs after the model's last message ends with its turn, and the client shows that."""
    session = Session(bench, [
        ("weave", [calls("exec_command", {"cmd": "echo begun; sleep 600", "yield_time_ms": 250})]),
        ("session ID", held("it goes on")),
    ])
    client = session.begin()
    client.enter("weave")
    session.model.wait_until_held()
    client.require_shown("• Ran echo begun; sleep 600", "└ begun")
    require_equal("how many commands run", len(_sleepers(bench)), 1)
    session.model.release()
    client.terminal.wait_for("• it goes on")
    client.wait_for_told("turn/completed", count=3)
    client.wait_for_told("warning")
    require_equal("what still runs", _sleepers(bench), [])
    session.close(client)


def _sleepers(bench):
    """Returns the agent's running commands."""
    return [pid for pid, name in bench.processes() if name == "sleep"]


CHECKS = {
    "tui-command": command,
    "tui-exploring": exploring,
    "tui-plan": plan,
    "tui-question": question,
    "tui-interrupt-command": interrupt,
    "tui-shell": shell,
    "tui-terminal": terminal,
}
