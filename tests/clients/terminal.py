"""A terminal of a fixed size, in a separate tmux server."""

import shutil
import subprocess

from harness import DEADLINE_S, Failure, require, wait_until

_COLUMNS, _ROWS = 120, 80

# Runs the program, records its exit code, and keeps the terminal open. tmux can do this too
# (remain-on-exit), but now and then it loses the exit code and the last lines.
_KEEPER = '"$@"; echo $? > "$0.part"; mv "$0.part" "$0"; exec sleep 600'


class Terminal:
    """One program in one terminal. The last screen stays when the program ends."""

    def __init__(self, bench, command, environment, name="client", folder=None):
        tmux = shutil.which("tmux")
        require(tmux, "there is no tmux; run `cargo xtask parts debian`")
        settings = bench.folder / "tmux.conf"
        settings.write_text("set -g status off\n")
        # The socket is in the check's folder, so no other tmux is affected.
        self._tmux = [tmux, "-L", name, "-f", str(settings)]
        self._environment = bench.environment(TMUX_TMPDIR=str(bench.folder), TERM="xterm-256color")
        variables = [f"{name}={value}" for name, value in environment.items()]
        self._exit_code_file = bench.folder / f"{name}.exit-code"
        self._last = ""
        bench.on_screen = True
        bench.evidence(f"the last screen of {name}", lambda: filter(None, self._last.splitlines()))
        bench.afterwards(self._close)
        self._run(
            *("new-session", "-d", "-x", str(_COLUMNS), "-y", str(_ROWS)),
            *("-c", str(folder or bench.workspace)),
            *("sh", "-c", _KEEPER, str(self._exit_code_file)),
            *("env", "-i", *variables, "TERM=screen-256color", *(str(word) for word in command)),
        )

    def screen(self):
        """Returns the screen, with wrapped lines joined."""
        lines = self._run("capture-pane", "-p", "-J").splitlines()
        self._last = "\n".join(line.rstrip() for line in lines)
        return self._last

    def wait_for(self, text):
        def shown():
            # Read first: the screen may be the last one.
            ended = self._exit_code()
            if text in self.screen():
                return True
            # The program has ended, and tmux has had time to draw its output.
            if ended and not wait_until(lambda: text in self.screen(), deadline_s=2):
                raise Failure(f"the program ended with {ended} and did not show {text!r}")
            return bool(ended)

        require(wait_until(shown), f"the screen did not show {text!r} within {DEADLINE_S} s")

    def wait_until_shown(self, text, times):
        """Waits until the screen has the text so many times."""
        found = wait_until(lambda: self.screen().count(text) == times)
        require(found, f"the screen did not show {text!r} {times} times within {DEADLINE_S} s")

    def answer(self, question, key):
        """Presses a key until the question has disappeared: a program may draw before it reads keys."""
        self.wait_for(question)

        def answered():
            self.press(key)
            return wait_until(lambda: question not in self.screen(), deadline_s=1)

        require(wait_until(answered), f"{key} did not answer {question!r}")

    def enter(self, line, shown=None):
        """Types a line, waits until the screen shows it (`shown`, if it differs), and presses Enter.

        It uses a bracketed paste: clients treat very fast keys as a paste too, and then Enter becomes
        a part of it.
        """
        self._run("set-buffer", line)
        self._run("paste-buffer", "-p", "-d")
        self.wait_for(shown or line)
        self.press("Enter")

    def press(self, *keys):
        self._run("send-keys", *keys)

    def ended(self):
        return bool(self._exit_code())

    def wait_for_end(self):
        """Waits until the program has ended; returns its exit code."""
        code = wait_until(self._exit_code)
        self.screen()
        require(code, f"the program did not end within {DEADLINE_S} s")
        return int(code)

    def _exit_code(self):
        return self._exit_code_file.exists() and self._exit_code_file.read_text().strip()

    def _close(self):
        # tmux may have ended already, so its result does not matter.
        subprocess.run(
            [*self._tmux, "kill-server"],
            env=self._environment,
            capture_output=True,
            timeout=DEADLINE_S,
        )

    def _run(self, *words):
        done = subprocess.run(
            [*self._tmux, *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        if done.returncode != 0:
            raise Failure(f"tmux {words[0]}: {done.stderr.strip()}")
        return done.stdout
