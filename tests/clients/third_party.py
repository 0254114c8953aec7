"""The conversation that third-party clients hold with the server: a turn, an approved command, and a resume.

The resume is in another process of the client and of the server, and must bring the whole conversation
back to the model.
"""

import json

from harness import require, require_equal, require_no_panic, run_client
from mock_model import MockModel, beyond, says
from recorder import SERVER
from results import ClientResult
from stand_in import StandIn

#: The prompt of each turn, and the answer that the client must show.
TURN = ("what makes cloth?", "warp and weft")
APPROVAL = ("weave", "it is woven")
RESUME = ("and what makes yarn?", "wool")
#: It writes outside the workspace, which needs an approval.
_COMMAND = "echo woven | tee -a ../cloth.txt"
_REQUEST = "item/commandExecution/requestApproval"


class Conversation:
    """The server of a client, its model, and what the client did with both."""

    def __init__(self, bench, name="raddle-recorded"):
        """`name` is that of the program, for a client that looks for one on `PATH`."""
        self._bench = bench
        self._stand_in = StandIn(bench.folder, bench.raddle)
        self.program = self._stand_in.program
        if name != self.program.name:
            programs = bench.folder / "programs"
            programs.mkdir()
            self.program = programs / name
            self.program.symlink_to(self._stand_in.program)
        bench.evidence("the last messages", lambda: self._stand_in.record().tail())
        bench.evidence("the server's stderr", lambda: self._stand_in.stderr().splitlines()[-40:])
        self.model = MockModel(bench, [
            (TURN[0], says(TURN[1])),
            (APPROVAL[0], [beyond(_COMMAND)]),
            ("woven", says(APPROVAL[1])),
            (RESUME[0], says(RESUME[1])),
        ])
        self.model.configure(
            bench, approval_policy="on-request", sandbox_mode="workspace-write"
        )

    def environment(self, **more):
        """Returns an environment in which the server is first on `PATH`."""
        environment = self._bench.environment(**more)
        environment["PATH"] = f"{self.program.parent}:{environment['PATH']}"
        return environment

    def require_turn(self, answer):
        require_equal("the answer", answer, TURN[1])

    def require_approval(self, answer):
        """Checks that the server asked once, the client allowed it, and the command ran."""
        require_equal("the answer after the approval", answer, APPROVAL[1])
        require_equal("the client's decisions", self.decisions(), ["accept"])
        written = (self._bench.folder / "cloth.txt").read_text()
        require_equal("the file of the command", written, "woven\n")

    def decisions(self):
        """Returns the client's responses to approval requests."""
        asked = self._stand_in.record().calls(by=SERVER)
        require_equal("the server's requests", {call.method for call in asked}, {_REQUEST})
        return [call.result["decision"] for call in asked]

    def require_resume(self, answer, prompts=(TURN[0], APPROVAL[0], RESUME[0])):
        """Checks that another server had the conversation. A client may add text to each prompt."""
        require_equal("the answer after the resume", answer, RESUME[1])
        starts = [start for start in self._stand_in.starts() if "app-server" in start]
        require(len(starts) > 1, "the client started only one server")
        said = [text for role, text in self.model.asked()[-1] if role == "user"]
        require_equal("the number of the user's messages", len(said), len(prompts))
        for text, prompt in zip(said, prompts):
            require(prompt in text, f"the model read {text!r}, not {prompt!r}")

    def require_clean(self):
        """Checks that no server panicked."""
        require_no_panic(self._stand_in.stderr())

    def refused(self):
        """Returns the methods that the client requested and the server does not serve."""
        calls = self._stand_in.record().calls()
        return sorted({call.method for call in calls if call.error_code == -32601})


def python_library(name, version, program, help):
    """Returns the check of a library from PyPI: a program starts a thread with it, and resumes it later."""

    def check(bench):
        result = ClientResult(bench, name, "PyPI", version, help)
        conversation = Conversation(bench, name="codex")
        python = bench.parts.python(name, version)

        def run(*words):
            command = [python, "-B", program, conversation.program, bench.workspace, *words]
            code, out, _ = run_client(bench, command, conversation.environment())
            require_equal("the program's exit code", code, 0)
            return json.loads(out)

        seen = run(TURN[0], APPROVAL[0])
        conversation.require_turn(seen["answers"][0])
        conversation.require_approval(seen["answers"][1])
        result.works("turn", "approval")
        resumed = run("--resume", seen["thread"], RESUME[0])
        require_equal("the resumed thread", resumed["thread"], seen["thread"])
        conversation.require_resume(resumed["answers"][0])
        result.works("resume")
        require_equal("requests that are not served", conversation.refused(), [])
        conversation.require_clean()

    return check
