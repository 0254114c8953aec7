"""What the stock terminal client has the server run: git, for /diff."""

import subprocess

from harness import require, require_equal
from tui_session import Session

_FILE = "cloth.txt"


def diff(bench):
    """What changed in the thread's folder is shown, also in a file that git does not know yet."""
    _repository(bench)
    session = Session(bench, [])
    client = session.begin()
    client.enter("/diff")
    client.terminal.wait_for("+twill weave")
    client.terminal.wait_for("-plain weave")
    client.terminal.wait_for("+flax and wool")
    client.settle()
    calls = [call for call in client.record.calls() if call.method == "command/exec"]
    require(calls, "the client did not have the server run anything")
    for call in calls:
        require_equal("the program", call.params["command"][0], "git")
        require_equal("its folder", call.params["cwd"], str(bench.server_folder))
        require_equal("what it is fenced by", call.params["sandboxPolicy"], None)
        require_equal("what it wrote to stderr", call.result["stderr"], "")
    client.terminal.press("q")
    session.close(client)


def _repository(bench):
    """A repository in which one file was changed and one is new."""
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
