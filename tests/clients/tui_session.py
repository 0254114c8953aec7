"""The stock terminal client in longer conversations, with `raddle mock` as the model."""

from calls import require_answered, require_in_order
from harness import Server, require, require_equal, wait_until
from mock_model import MODEL, MockModel, says, title
from tui_client import EMPTY_PROMPT, SPARED, recorded, recorded_unix, start_tui
from turns import Told

#: Every conversation begins with these; the client then has a title for it.
PROMPT, ANSWER, TITLE = "what makes cloth?", "warp and weft", "Weave cloth"
#: After a resume the client also sends this request, and continues after an error.
_SPARED_AFTER_RESUME = "thread/goal/get"
#: Shown below the response when a turn has ended.
_WORKED = "Worked for"
_WORKING = "esc to interrupt"


class Session:
    """A server, its model and its terminals."""

    def __init__(self, bench, answers, unix=False, folder=None, **settings):
        self._bench = bench
        self._unix = unix
        #: The working folder of the clients.
        self._folder = folder
        self._opened = 0
        self.model = MockModel(bench, [title(TITLE), ("cloth", says(ANSWER)), *answers])
        self.model.configure(bench, **settings)
        self.server = self._serve(0)

    def open(self, *arguments):
        """Starts a client, and waits until it accepts input."""
        client = self.start(*arguments)
        client.terminal.wait_for(EMPTY_PROMPT)
        # The client accepts input before the thread starts; it shows this afterwards.
        client.terminal.wait_for(f"{MODEL} default")
        return client

    def start(self, *arguments):
        """Starts a client."""
        self._opened += 1
        name = f"client-{self._opened}"
        if self._unix:
            record, relay = recorded_unix(self._bench, self.server, name)
            remote = f"unix://{relay.address}"
        else:
            record, relay = recorded(self._bench, self.server)
            remote = f"ws://{relay.address}"
        terminal = start_tui(self._bench, remote, *arguments, name=name, folder=self._folder)
        return Client(terminal, record, relay)

    def begin(self):
        """Opens a client, and runs its first turn."""
        client = self.open()
        client.first_turn(PROMPT, ANSWER)
        return client

    def restart(self):
        """Starts another server at the address of one that has ended."""
        self.server = self._serve(0 if self._unix else self.server.port)

    def close(self, *clients):
        for client in clients:
            client.quit()
        self.server.stop()

    def _serve(self, port):
        if self._unix:
            return Server(self._bench, "--listen", f"unix://{self._bench.folder / 'server.sock'}")
        listen = f"ws://127.0.0.1:{port}"
        return Server(self._bench, "--listen", listen, "--insecure-loopback")


class Client:
    """One terminal, and the messages between its program and the server."""

    def __init__(self, terminal, record, relay):
        self.terminal = terminal
        self.record = record
        self.relay = relay

    @property
    def thread(self):
        """Returns the thread of the user's last turn."""
        return self._turns()[-1].params["threadId"]

    def enter(self, line, steers=False):
        """Sends a prompt. Unless it steers a turn, the client must know that the last turn has ended."""
        self.terminal.wait_for(EMPTY_PROMPT)
        if not steers:
            ended = wait_until(lambda: _WORKING not in self.terminal.screen())
            require(ended, f"the client still shows {_WORKING!r}")
        self.terminal.enter(line)

    def turn(self, prompt, answer):
        """Sends a prompt, and waits until the client shows the whole response."""
        before = self.terminal.screen().count(_WORKED)
        self.enter(prompt)
        self.terminal.wait_for(f"• {answer}")
        require(wait_until(lambda: self._turns()[-1].result), "the turn was not accepted")
        turn = self._turns()[-1].result["turn"]["id"]
        require(wait_until(lambda: turn in self._ended()), "the turn did not end")
        # Until the client has read the end of the turn, it adds typed input to that turn.
        ended = wait_until(lambda: self.terminal.screen().count(_WORKED) > before)
        require(ended, f"the client did not show {_WORKED!r} once more")

    def first_turn(self, prompt, answer):
        """The first turn of a thread: the client then requests a title, and shows it."""
        self.turn(prompt, answer)
        self.terminal.wait_for(f"· {TITLE}")
        self.settle()

    def call(self, method, **params):
        """Waits for a call of the method with these params and its response; returns the last one."""

        def answered():
            calls = [call for call in self.record.calls() if call.method == method]
            found = [call for call in calls if {**call.params, **params} == call.params]
            return found and found[-1].answers and found[-1]

        call = wait_until(answered)
        require(call, f"the client did not call {method}, or received no response")
        require(call.error_code is None, f"the response to {method} was {call.answers[0]}")
        return call

    def _turns(self):
        """Returns the turns of the user; those for titles have a schema."""
        turns = [call for call in self.record.calls() if call.method == "turn/start"]
        return [call for call in turns if not call.params["outputSchema"]]

    def _ended(self):
        told = [message for message, _ in self.record.told()]
        ends = [message for message in told if message.get("method") == "turn/completed"]
        return [message["params"]["turn"]["id"] for message in ends]

    def count(self, method):
        """Returns the number of notifications of this method."""
        return sum(message.get("method") == method for message, _ in self.record.told())

    def wait_for_told(self, method, count=1):
        found = wait_until(lambda: self.count(method) >= count)
        require(found, f"{method} came {self.count(method)} times, not {count}")

    def told(self, thread=None):
        return Told(self.record, thread or self.thread)

    def require_shown(self, *lines):
        """Waits until the screen has these lines in this order, each once."""

        def shown():
            return [line.strip() for line in self.terminal.screen().splitlines()]

        def are_in_order():
            rest = iter(shown())
            return all(line in rest for line in lines)

        wait_until(are_in_order)
        found = shown()
        require_in_order(found, lines)
        for line in lines:
            require_equal(f"how often {line!r} is shown", found.count(line), 1)

    def settle(self):
        """Waits until every call has a response."""
        settled = wait_until(lambda: all(call.answers for call in self.record.calls()))
        require(settled, "a call has no response")

    def quit(self, refused=()):
        self.settle()
        self.enter("/quit")
        require_equal("the client's exit code", self.terminal.wait_for_end(), 0)
        self.settle()
        require_answered(self.record, [*SPARED, _SPARED_AFTER_RESUME], refused)
