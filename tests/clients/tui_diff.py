"""The command that the stock terminal client runs on the server: git, for /diff."""

import subprocess

from harness import require, require_equal
from tui_session import Session

_FILE = "cloth.txt"


def diff(bench):
    """The client shows the changes in the thread's folder, also in an untracked file."""
    _repository(bench)
    session = Session(bench, [])
    client = session.begin()
    client.enter("/diff")
    client.terminal.wait_for("+twill weave")
    client.terminal.wait_for("-plain weave")
    client.terminal.wait_for("+flax and wool")
    client.settle()
    calls = [call for call in client.record.calls() if call.method == "command/exec"]
    require(calls, "the client sent no command to the server")
    for call in calls:
        require_equal("the program", call.params["command"][0], "git")
        require_equal("its folder", call.params["cwd"], str(bench.server_folder))
        require_equal("its sandbox", call.params["sandboxPolicy"], None)
        require_equal("what it wrote to stderr", call.result["stderr"], "")
    client.terminal.press("q")
    session.close(client)


def _repository(bench):
    """Creates a repository with one changed and one new file."""
    folder = bench.server_folder

    def git(*words):
        who = ["-c", "user.name=Weaver", "-c", "user.email=weaver@localhost"]
        subprocess.run(
            ["git", *who, *words],
            cwd=folder,
            env=bench.environment(),
            check=True,
            stdout=subprocess.DEVNULL,
        )

    git("init", "--quiet")
    (folder / _FILE).write_text("plain weave\n")
    git("add", _FILE)
    git("commit", "--quiet", "--message", "Begin")
    (folder / _FILE).write_text("twill weave\n")
    (folder / "yarn.txt").write_text("flax and wool\n")


CHECKS = {"tui-diff": diff}
