"""`raddle mock` as the model: scripted responses, which a check can hold and release."""

import json
import re
import subprocess
import urllib.request

from harness import DEADLINE_S, require, require_equal, wait_until

MODEL = "mock"


class MockModel:
    """A process of the program under test. `answers`: a text to match in the input, steps, a maximum count.

    The mock uses the first answer whose text matches, at most so often; answers without a text (None) in
    order. `docs/mock.md` defines the steps.
    """

    def __init__(self, bench, answers=(), script=None):
        """`script` is the whole text of a script, in place of answers."""
        path = bench.folder / "mock.toml"
        path.write_text(script or "".join(_answer(*answer) for answer in answers))
        self._stderr = bench.folder / "mock.stderr"
        self._asked = []
        bench.evidence("the requests to the model", lambda: self._asked)
        bench.evidence("the mock's stderr", lambda: self._stderr.read_text().splitlines()[-20:])
        with open(self._stderr, "wb") as stderr:
            self._process = subprocess.Popen(
                [bench.raddle, "mock", "--listen", "127.0.0.1:0", "--script", path],
                env=bench.environment(),
                cwd=bench.server_folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        bench.afterwards(self._end)
        found = re.fullmatch(r"(http://\S+)/v1\n", self._process.stdout.readline())
        require(found, "the mock did not print its address")
        self.address = found.group(1)

    @property
    def port(self):
        return int(self.address.rsplit(":", 1)[1])

    def stderr(self):
        return self._stderr.read_text()

    @property
    def settings(self):
        """Returns the settings of a server that uses it: keys, and their values in TOML."""
        return {
            "model": f'"{MODEL}"',
            "model_provider": f'"{MODEL}"',
            f"model_providers.{MODEL}.base_url": f'"{self.address}/v1"',
        }

    def configure(self, bench, **more):
        """Writes the settings, and further ones, into the server's home."""
        settings = {key: json.dumps(value) for key, value in more.items()} | self.settings
        lines = [f"{key} = {value}\n" for key, value in settings.items()]
        (bench.server_home / "config.toml").write_text("".join(lines))

    def asked(self):
        """Returns the messages of each call, as pairs of a role and a text, without calls for titles."""
        return [_conversation(it) for it in self.bodies() if not _wants_an_object(it)]

    def bodies(self):
        """Returns the whole body of each call."""
        return [it["body"] for it in self.state()["requests"]]

    def efforts(self):
        """Returns the reasoning effort of each call, without calls for titles."""
        bodies = [it for it in self.bodies() if not _wants_an_object(it)]
        return [it.get("reasoning", {}).get("effort") for it in bodies]

    def tools(self):
        """Returns the names of the tools in each call."""
        return [[tool["name"] for tool in it.get("tools", [])] for it in self.bodies()]

    def given(self):
        """Returns the tool results in the last call, without calls for titles."""
        *_, last = (it["input"] for it in self.bodies() if not _wants_an_object(it))
        return [it["output"] for it in last if it["type"].endswith("_call_output")]

    def wait_until_held(self):
        require(wait_until(lambda: self.state()["held"] == 1), "no response is held")

    def wait_until_left(self):
        """Waits until no client waits for the held response."""
        require(wait_until(lambda: self.state()["held"] == 0), "a client still waits for the response")

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
        # Stored for the evidence, which is printed when all processes have ended.
        if self._process.poll() is None:
            self._asked = [json.dumps(it.get("input"))[-1000:] for it in self.bodies()]
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()


def says(text):
    return [f"text = {json.dumps(text)}"]


def calls(tool, arguments):
    """Calls a tool, without a message."""
    return f"call = {json.dumps(tool)}, arguments = {_inline(arguments)}"


def beyond(line):
    """Runs a command outside the sandbox, which needs an approval."""
    wish = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
    return calls("exec_command", {"cmd": line, **wish})


def patches(text):
    """Calls the tool for patches, whose input is plain text."""
    return f"call = \"apply_patch\", input = {json.dumps(text)}"


def held(text):
    """Starts a response, waits until it is released, and sends the text."""
    return ["held = true", *says(text)]


def begun(text):
    """Sends the first five letters, and then nothing for longer than any timeout."""
    return [f"text = {json.dumps(text)}, size = 5, gap_ms = 600000"]


def title(text):
    """The response to a client's request for a title. The request repeats the user's input, so this comes first."""
    return ("task title", says(json.dumps({"title": text})))


def _answer(said, steps, times=None):
    tables = ", ".join(f"{{ {step} }}" for step in steps)
    often = f"times = {times}\n" if times else ""
    match = "" if said is None else f"match = {json.dumps(said)}\n"
    return f"[[answer]]\n{match}{often}steps = [{tables}]\n"


def _inline(value):
    """Returns a value as TOML in one line. Strings and numbers are as in JSON."""
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
    """Returns the messages. Checks the server's own message to the model, which comes once, and leaves it out."""
    said = [
        (item.get("role"), _text(item.get("content", [])))
        for item in body.get("input", [])
    ]
    (role, told), *rest = said
    require_equal("the role of the server's own message", role, "user")
    require(told.startswith("# Where you work\n"), f"the model read {told!r}")
    return rest


def _text(content):
    """Returns the text: a message of the model is a string, other messages have parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)
