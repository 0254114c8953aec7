"""Long-running programs of a check: a hub, a runner, a host. Each has a process group and a log."""

import os
import signal
import subprocess

from harness import DEADLINE_S, require, wait_until


class Service:
    """A program that runs until the check ends, or until `stop`."""

    def __init__(self, bench, name, command, environment):
        self.name = name
        self._log = bench.folder / f"{name}.log"
        bench.evidence(f"the log of {name}", lambda: self.log().splitlines()[-40:])
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                env=environment,
                cwd=bench.workspace,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Its own process group, so that its children end with it.
                start_new_session=True,
            )
        bench.afterwards(self.stop)

    def log(self):
        return self._log.read_text(errors="replace")

    def wait_for(self, ready, what):
        """Polls until `ready()` returns a true value, and returns it. Fails if the program ends before."""

        def found():
            require(self._process.poll() is None, f"{self.name} ended: {self.log()[-2000:]}")
            return ready()

        value = wait_until(found)
        require(value, f"{self.name}: no {what} within {DEADLINE_S} s")
        return value

    def stop(self):
        """Ends the program and its children."""
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            pass
        # Its children may have ignored the first signal.
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number):
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass


def end_descendants(bench):
    """Ends the processes of a check that left the group of the program that started them.

    Register this before the check starts anything, so that it runs last.
    """

    def end():
        for pid, _ in bench.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    bench.afterwards(end)
