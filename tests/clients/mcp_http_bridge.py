"""Streamable HTTP in front of an MCP server on stdio, for a suite that speaks HTTP only.

Each session is a process. The bridge passes messages on unchanged, except that calls of tools of the suite
become calls of the server's own tools. So results about messages are about the server, and results about
HTTP are about this file.
"""

import http.server
import json
import queue
import secrets
import socketserver
import subprocess
import sys
import threading

from harness import DEADLINE_S

_SESSION = "mcp-session-id"
_LOCAL = ("127.0.0.1", "localhost")


class Session:
    """A server process. Its messages go to the requests that wait for them."""

    def __init__(self, command, cwd, environment, log):
        self._process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        self._lock = threading.Lock()
        #: Queues of the open requests, by id, oldest first.
        self._open = {}
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message):
        with self._lock:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def ask(self, message):
        """Sends a request. Yields the messages of the server until its response, which is the last."""
        messages = queue.Queue()
        self._open[json.dumps(message["id"])] = messages
        self.send(message)
        while True:
            answer = messages.get(timeout=DEADLINE_S)
            yield answer
            if answer.get("id") == message["id"] and "method" not in answer:
                return

    def close(self):
        """Closes stdin, as a client that leaves, and returns the exit code."""
        self._process.stdin.close()
        code = self._process.wait(timeout=DEADLINE_S)
        self._process.stdout.close()
        return code

    def _read(self):
        for line in self._process.stdout:
            message = json.loads(line)
            is_response = "method" not in message
            # MCP on stdio does not tie other messages to a request; the newest one gets them.
            key = json.dumps(message["id"]) if is_response else next(reversed(self._open), None)
            messages = self._open.pop(key, None) if is_response else self._open.get(key)
            if messages:
                messages.put(message)


class Bridge(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """The HTTP server. `start()` starts a server process and returns its session.

    `calls` has the params of a call for each tool that the server does not have itself.
    """

    daemon_threads = True

    def __init__(self, start, calls):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.start = start
        self.calls = calls
        self.sessions = {}

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"

    def handle_error(self, request, client_address):
        # The clients under test may reset their connections; the standard class prints a traceback for each.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def close_sessions(self):
        """Ends the processes, and returns their exit codes."""
        sessions, self.sessions = self.sessions, {}
        return [it.close() for it in sessions.values()]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        message = json.loads(self.rfile.read(length))
        # A page of another site may reach this address by its name.
        if self.headers.get("host", "").rsplit(":", 1)[0] not in _LOCAL:
            self._empty(403)
        elif message.get("method") == "initialize":
            name = secrets.token_hex(16)
            session = self.server.sessions[name] = self.server.start()
            self._json(list(session.ask(message))[-1], name)
        elif not (session := self.server.sessions.get(self.headers.get(_SESSION))):
            self._empty(404)
        elif "id" not in message or "method" not in message:
            session.send(message)
            self._empty(202)
        elif message["method"] == "tools/call":
            params = message["params"]
            own = self.server.calls.get(params["name"], {})
            self._stream(session.ask({**message, "params": {**params, **own}}))
        else:
            self._json(list(session.ask(message))[-1])

    def do_GET(self):
        self._empty(405)

    def do_DELETE(self):
        session = self.server.sessions.pop(self.headers.get(_SESSION), None)
        if session:
            session.close()
        self._empty(200 if session else 404)

    def log_message(self, *_):
        pass

    def _empty(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def _json(self, message, session=None):
        body = json.dumps(message).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if session:
            self.send_header(_SESSION, session)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, messages):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for message in messages:
            self.wfile.write(f"event: message\ndata: {json.dumps(message)}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True
