"""codex-telegram with Raddle as `codex.command`: its web page in Chromium, without Telegram."""

from pathlib import Path

from browser import drive_page
from harness import require_equal
from results import ClientResult
from third_party import APPROVAL, RESUME, TURN, Conversation
from web_client import WebClient

_NAME, _VERSION = "codex-telegram", "0.6.0"
_PROGRAM = Path(__file__).with_name("codex_telegram_page_program.mjs")
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
    """Its web server, its page in Chromium, and the requests of the page."""

    def __init__(self, bench, conversation):
        self._bench = bench
        python = bench.parts.python(_NAME, _VERSION)
        settings = bench.client_home / "codex-telegram.toml"

        def command(port):
            settings.write_text(_SETTINGS.format(
                folder=bench.workspace, port=port, password=_PASSWORD, program=conversation.program
            ))
            return [python.with_name("codex-telegram"), "--web-only", "--config", settings]

        self.web = WebClient(bench, command, conversation.environment())
        self.web.post("/api/auth/login", username="weaver", password=_PASSWORD)

    def run(self, title, *turns):
        """Sends prompts on the page and waits until it shows their answers; approves what is asked. The title
        is that of a thread in its list, or empty for a new one."""
        words = [word for turn in turns for word in turn]
        drive_page(self._bench, _PROGRAM, self.web.address, _PASSWORD, title, *words)

    def thread(self):
        """Returns the only thread of its list."""
        (thread,) = self.web.get("/api/threads/summaries")["items"]
        return thread["id"]

    def answers(self, thread):
        """Returns the last answer to each prompt of a thread."""
        answers, prompt = {}, None
        for message in self.web.get(f"/api/threads/read?thread_id={thread}")["messages"]:
            if message["role"] == "user":
                prompt = message["text"]
            elif message["role"] == "assistant":
                answers[prompt] = message["text"]
        return answers


def page(bench):
    result = ClientResult(
        bench, _NAME, "PyPI", _VERSION, "`codex.command` in its configuration names the program.",
    )
    conversation = Conversation(bench)
    first = _Page(bench, conversation)
    first.run("", TURN)
    thread = first.thread()
    conversation.require_turn(first.answers(thread).get(TURN[0]))
    result.works("page", "turn")
    first.web.kill()
    second = _Page(bench, conversation)
    second.run(TURN[0], RESUME)
    require_equal("the resumed thread", second.thread(), thread)
    conversation.require_resume(second.answers(thread).get(RESUME[0]), [TURN[0], RESUME[0]])
    result.works("resume")
    second.run(TURN[0], APPROVAL)
    conversation.require_approval(second.answers(thread).get(APPROVAL[0]))
    result.works("approval")
    conversation.require_clean()


CHECKS = {_NAME: page}
