"""A model with a fixed response: the provider in these checks."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import require, require_equal, wait_until

PROVIDER = "script"
MODEL = "loom"
PIECES = ["warp ", "and ", "weft"]
#: The message of every turn.
ANSWER = "".join(PIECES)
INPUT_TOKENS, OUTPUT_TOKENS = 7, 3

_PATH = "/v1/responses"
_PATIENCE_S = 30


class ModelScript:
    """Responds as the OpenAI Responses API does, and records its requests.

    `pieces_seen` counts the deltas that have reached the client. With it, the script sends its first
    delta and waits until it has arrived before it sends the rest. With `tls`, a context of the module
    `ssl`, it uses TLS.
    """

    def __init__(self, bench, pieces_seen=None, tls=None):
        self._pieces_seen = pieces_seen
        self._lock = threading.Lock()
        self._requests = []
        self._oddities = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._scheme = "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
            self._scheme = "https"
        bench.serve(self._server)
        bench.evidence("the requests to the model", self._lines)

    @property
    def port(self):
        return self._server.server_port

    @property
    def settings(self):
        """Returns the settings of a server that uses it: keys, and their values in TOML."""
        return self.settings_at("127.0.0.1")

    def settings_at(self, host, scheme=None):
        """The same, with another host name or scheme."""
        address = f"{scheme or self._scheme}://{host}:{self.port}/v1"
        return {
            "model": f'"{MODEL}"',
            "model_provider": f'"{PROVIDER}"',
            f"model_providers.{PROVIDER}.base_url": f'"{address}"',
        }

    def configure(self, bench):
        """Writes the settings into the server's home."""
        lines = [f"{key} = {value}\n" for key, value in self.settings.items()]
        (bench.server_home / "config.toml").write_text("".join(lines))

    def asked(self):
        """Returns each request: the model's name and the messages, as pairs of a role and a text."""
        with self._lock:
            return [(it.get("model"), _conversation(it)) for it in self._requests]

    def bodies(self):
        """Returns the whole body of each request."""
        with self._lock:
            return list(self._requests)

    def require_asked(self, expected):
        """Checks its requests and their order, and that each asked for a stream."""
        require_equal("the requests to the model", self.asked(), expected)
        self.require_well_formed()

    def require_well_formed(self):
        with self._lock:
            require_equal("the faults of the requests", self._oddities, [])

    def take(self, path, body):
        """Returns whether a model would accept the request."""
        try:
            request = json.loads(body)
        except ValueError:
            request = None
        good = path == _PATH and isinstance(request, dict) and request.get("stream") is True
        with self._lock:
            if good:
                self._requests.append(request)
            else:
                self._oddities.append(f"{path}: {body[:200]!r}")
        return good

    def events(self):
        """Yields the response. With `pieces_seen` the first delta must arrive before the next is sent."""
        before = self._pieces_seen and self._pieces_seen()
        for event in _EVENTS:
            yield event
            if self._pieces_seen and event.get("delta") == PIECES[0]:
                if not wait_until(lambda: self._pieces_seen() > before, _PATIENCE_S):
                    with self._lock:
                        self._oddities.append("the first piece did not arrive before the rest")

    def _lines(self):
        with self._lock:
            oddities = list(self._oddities)
        inputs = [json.dumps(it.get("input"))[-400:] for it in self.bodies()]
        return inputs + oddities


def _conversation(request):
    """Returns the messages. Checks the server's own message to the model, which comes once, and leaves it out."""
    said = [
        (item.get("role"), _text(item.get("content", [])))
        for item in request.get("input", [])
    ]
    told, rest = said[:1], said[1:]
    require_equal("the role of the server's own message", [role for role, _ in told], ["user"])
    require(told[0][1].startswith("# Where you work\n"), f"the model read {told[0][1]!r}")
    return rest


def _handler(script):
    class Handler(BaseHTTPRequestHandler):
        # The library calls this name.
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if not script.take(self.path, body):
                self.send_error(400)
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            try:
                for event in script.events():
                    frame = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                    self.wfile.write(frame.encode())
            except OSError:
                # The server disconnected before the end; a check that misses the response fails.
                pass

        def log_message(self, *_):
            """Logs nothing: the evidence has the requests."""

    return Handler


_ITEM = {"type": "message", "id": "item-1", "role": "assistant"}
_USAGE = {
    "input_tokens": INPUT_TOKENS,
    "output_tokens": OUTPUT_TOKENS,
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
}
_EVENTS = [
    {"type": "response.created", "response": {"id": "response-1"}},
    {"type": "response.output_item.added", "item": {**_ITEM, "content": []}},
    *(
        {"type": "response.output_text.delta", "item_id": _ITEM["id"], "delta": piece}
        for piece in PIECES
    ),
    {
        "type": "response.output_item.done",
        "item": {**_ITEM, "content": [{"type": "output_text", "text": ANSWER}]},
    },
    {"type": "response.completed", "response": {"id": "response-1", "usage": _USAGE}},
]


def _text(content):
    """Returns the text: a message of the model is a string, other messages have parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)
