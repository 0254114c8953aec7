"""`raddle daemon`, as a user runs it."""

import json
import subprocess

from harness import DEADLINE_S, require_equal, require_no_panic


class Daemon:
    """A server in the background."""

    def __init__(self, bench, *arguments):
        self._bench = bench
        self._log = bench.server_home / "daemon" / "daemon.log"
        bench.evidence("the daemon's log", lambda: self.log().splitlines()[-40:])
        bench.afterwards(lambda: self._run("stop", "--now"))
        require_equal("the state after the start", self._say("start", *arguments), "running")

    def require_running(self):
        require_equal("the daemon's state", self._say("status"), "running")

    def stop(self):
        require_equal("the state after the end", self._say("stop"), "stopped")
        require_no_panic(self.log())

    def log(self):
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _say(self, *words):
        """Returns the state that a successful command prints."""
        ran = self._run(*words, "--json")
        require_equal(f"daemon {words[0]}: exit code and stderr", (ran.returncode, ran.stderr), (0, ""))
        return json.loads(ran.stdout)["state"]

    def _run(self, *words):
        return subprocess.run(
            [self._bench.raddle, "daemon", *words],
            env=self._bench.environment(),
            cwd=self._bench.server_folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
