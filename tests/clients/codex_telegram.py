"""codex-telegram with Raddle as `codex.command`, through its web server without Telegram."""

from harness import require, require_equal, wait_until
from results import ClientResult
from third_party import APPROVAL, RESUME, TURN, Conversation
from web_client import WebClient

_NAME, _VERSION = "codex-telegram", "0.6.0"
#: A request is on the page within milliseconds, or never.
_REQUEST_DEADLINE_S = 5
_PASSWORD = "warp-and-weft"
_SETTINGS = """project = "default"

[projects.default]
name = "cloth"
path = "{folder}"

[telegram]
enabled = false

[web]
enabled = true
host = "127.0.0.1"
port = {port}
password = "{password}"

[codex]
command = "{program}"
args = ["app-server"]

[updates]
pypi_check = false
"""


class _Page:
    """The requests of its page."""

    def __init__(self, bench, conversation):
        python = bench.parts.python(_NAME, _VERSION)
        settings = bench.client_home / "codex-telegram.toml"

        def command(port):
            settings.write_text(_SETTINGS.format(
                folder=bench.workspace, port=port, password=_PASSWORD, program=conversation.program
            ))
            return [python.with_name("codex-telegram"), "--web-only", "--config", settings]

        self.web = WebClient(bench, command, conversation.environment())
        self.web.post("/api/auth/login", username="weaver", password=_PASSWORD)

    def send(self, prompt, **thread):
        """Starts a turn; returns its thread."""
        return self.web.post("/api/chat/messages", text=prompt, **thread)["thread_id"]

    def answer(self, thread, prompt):
        """Waits for the answer to a prompt, the last message of the thread."""

        def found():
            messages = self.web.get(f"/api/threads/read?thread_id={thread}")["messages"]
            texts = [it.get("text") for it in messages]
            return prompt in texts[:-1] and messages[-1]["role"] == "assistant" and texts[-1]

        text = wait_until(found)
        require(text, f"no answer to {prompt!r}")
        return text


def page(bench):
    result = ClientResult(
        bench, _NAME, "PyPI", _VERSION,
        "`codex.command` in its configuration names the program. The check uses the requests of its page.",
    )
    conversation = Conversation(bench)
    first = _Page(bench, conversation)
    thread = first.send(TURN[0])
    conversation.require_turn(first.answer(thread, TURN[0]))
    result.works("turn")
    first.web.kill()
    second = _Page(bench, conversation)
    second.web.post("/api/threads/resume", thread_id=thread)
    require_equal("the resumed thread", second.send(RESUME[0], thread_id=thread), thread)
    conversation.require_resume(second.answer(thread, RESUME[0]), [TURN[0], RESUME[0]])
    result.works("resume")
    second.send(APPROVAL[0], thread_id=thread)
    asked = wait_until(lambda: second.web.get("/api/approvals")["items"], _REQUEST_DEADLINE_S)
    require(asked, "the page shows no approval")
    second.web.post(f"/api/approvals/{asked[0]['id']}", decision="approve")
    conversation.require_approval(second.answer(thread, APPROVAL[0]))
    result.works("approval")
    conversation.require_clean()


CHECKS = {_NAME: page}
