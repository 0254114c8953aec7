"""`raddle mock` as the model: it says what a check tells it, and goes on when it is let go."""

import json
import re
import subprocess
import urllib.request

from harness import DEADLINE_S, require, require_equal, wait_until

MODEL = "mock"


class MockModel:
    """A process of the program under test. `answers`: a text in what was said, steps, how often.

    The first answer whose text was said is given, if need be only so often; those without a text, which is
    None, in turn. Steps are those of
    `docs/mock.md`.
    """

    def __init__(self, bench, answers):
        script = bench.folder / "mock.toml"
        script.write_text("".join(_answer(*answer) for answer in answers))
        self._stderr = bench.folder / "mock.stderr"
        self._asked = []
        bench.evidence("what the model was asked", lambda: self._asked)
        bench.evidence("the mock's stderr", lambda: self._stderr.read_text().splitlines()[-20:])
        with open(self._stderr, "wb") as stderr:
            self._process = subprocess.Popen(
                [bench.raddle, "mock", "--listen", "127.0.0.1:0", "--script", script],
                env=bench.environment(),
                cwd=bench.server_folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        bench.afterwards(self._end)
        found = re.fullmatch(r"(http://\S+)/v1\n", self._process.stdout.readline())
        require(found, "the mock did not say where it listens")
        self.address = found.group(1)

    @property
    def port(self):
        return int(self.address.rsplit(":", 1)[1])

    def stderr(self):
        return self._stderr.read_text()

    @property
    def settings(self):
        """What a server must be told to use it: keys, and their values in TOML."""
        return {
            "model": f'"{MODEL}"',
            "model_provider": f'"{MODEL}"',
            f"model_providers.{MODEL}.base_url": f'"{self.address}/v1"',
        }

    def configure(self, bench, **more):
        """Writes the settings into the server's home, and more of them if there are."""
        settings = {key: json.dumps(value) for key, value in more.items()} | self.settings
        lines = [f"{key} = {value}\n" for key, value in settings.items()]
        (bench.server_home / "config.toml").write_text("".join(lines))

    def asked(self):
        """What was said so far in each call, as pairs of a role and a text. Titles are left out."""
        return [_conversation(it) for it in self.bodies() if not _wants_an_object(it)]

    def bodies(self):
        """All that it was sent in each call."""
        return [it["body"] for it in self.state()["requests"]]

    def efforts(self):
        """How long it was told to think in each call. Titles are left out."""
        bodies = [it for it in self.bodies() if not _wants_an_object(it)]
        return [it.get("reasoning", {}).get("effort") for it in bodies]

    def tools(self):
        """The names of the tools that it was told of in each call."""
        return [[tool["name"] for tool in it.get("tools", [])] for it in self.bodies()]

    def given(self):
        """What its tools gave so far, as the last call had it. Titles are left out."""
        *_, last = (it["input"] for it in self.bodies() if not _wants_an_object(it))
        return [it["output"] for it in last if it["type"].endswith("_call_output")]

    def wait_until_held(self):
        require(wait_until(lambda: self.state()["held"] == 1), "no answer is held")

    def wait_until_left(self):
        """Waits until nobody waits for the answer that is held."""
        require(wait_until(lambda: self.state()["held"] == 0), "the answer is still waited for")

    @property
    def release_address(self):
        return f"{self.address}/release"

    def release(self):
        request = urllib.request.Request(self.release_address, method="POST", data=b"")
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            require_equal("the mock's answer", answer.status, 200)

    def state(self):
        with urllib.request.urlopen(f"{self.address}/requests", timeout=DEADLINE_S) as answer:
            return json.load(answer)

    def _end(self):
        # Kept for the evidence, which is shown when all processes have ended.
        if self._process.poll() is None:
            self._asked = [json.dumps(it.get("input"))[-1000:] for it in self.bodies()]
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()


def says(text):
    return [f"text = {json.dumps(text)}"]


def calls(tool, arguments):
    """Calls a tool, and says no more."""
    return f"call = {json.dumps(tool)}, arguments = {_inline(arguments)}"


def beyond(line):
    """Runs a command outside the sandbox, for which someone must be asked."""
    wish = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
    return calls("exec_command", {"cmd": line, **wish})


def patches(text):
    """Calls the tool for patches, which takes plain text."""
    return f"call = \"apply_patch\", input = {json.dumps(text)}"


def held(text):
    """Begins, says nothing until it is let go, and then the text."""
    return ["held = true", *says(text)]


def begun(text):
    """Says the first five letters, and then nothing for longer than anyone waits."""
    return [f"text = {json.dumps(text)}, size = 5, gap_ms = 600000"]


def title(text):
    """The answer to a client that asks for one. It repeats the user, so this goes first."""
    return ("task title", says(json.dumps({"title": text})))


def _answer(said, steps, times=None):
    tables = ", ".join(f"{{ {step} }}" for step in steps)
    often = f"times = {times}\n" if times else ""
    match = "" if said is None else f"match = {json.dumps(said)}\n"
    return f"[[answer]]\n{match}{often}steps = [{tables}]\n"


def _inline(value):
    """As TOML writes it in one line. Texts and numbers are as in JSON."""
    match value:
        case dict():
            return f"{{ {', '.join(f'{key} = {_inline(it)}' for key, it in value.items())} }}"
        case list():
            return f"[{', '.join(map(_inline, value))}]"
        case _:
            return json.dumps(value)


def _wants_an_object(body):
    return "schema" in body.get("text", {}).get("format", {})


def _conversation(body):
    """What was said. What the server itself tells the model, once, is checked and left out."""
    said = [
        (item.get("role"), _text(item.get("content", [])))
        for item in body.get("input", [])
    ]
    (role, told), *rest = said
    require_equal("who tells the model where it works", role, "user")
    require(told.startswith("# Where you work\n"), f"the model was told {told!r}")
    return rest


def _text(content):
    """What the model said is a text, what it was told has parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)
