"""Records the traffic between a client and the server.

This module has the record, and the relay that fills it for sockets: it copies bytes and parses the
websocket frames. For stdio see stand_in.py, which fills the same kind of record.
"""

import json
import socket
import threading

CLIENT = "client"
SERVER = "server"

#: Recorded when a client connects while there is no server.
NO_SERVER = "the server took no connection"

_CHUNK = 65536
_BINARY, _CLOSE, _PING, _PONG = 0x2, 0x8, 0x9, 0xA


class Record:
    """The messages, in order. Safe to read while it grows."""

    def __init__(self):
        self._lock = threading.Lock()
        self._messages = []
        #: Descriptions of everything that is not a message of the protocol.
        self.oddities = []
        #: The head of each HTTP request and response, with its sender.
        self.heads = []
        #: The bodies of rejections.
        self.refusal = ""

    def add(self, sender, text, connection=0):
        try:
            message = json.loads(text)
        except ValueError:
            message = None
        with self._lock:
            if isinstance(message, dict):
                self._messages.append((connection, sender, message))
            else:
                self.oddities.append(f"{sender} sent what is no message: {text[:200]!r}")

    def note(self, oddity):
        with self._lock:
            self.oddities.append(oddity)

    def forget(self, oddity):
        """Marks a problem as expected."""
        with self._lock:
            self.oddities = [it for it in self.oddities if it != oddity]

    def add_head(self, sender, head):
        with self._lock:
            self.heads.append((sender, head))

    def add_refusal(self, text):
        with self._lock:
            self.refusal += text

    def messages(self):
        return [(sender, message) for _, sender, message in self._entries()]

    def _entries(self):
        with self._lock:
            return list(self._messages)

    def calls(self, by=CLIENT):
        """Returns the requests of one side in order, each with its responses so far."""
        entries = self._entries()
        answers = {}
        for connection, sender, message in entries:
            if sender != by and "method" not in message and "id" in message:
                answers.setdefault(_key(connection, message["id"]), []).append(message)
        calls = []
        for connection, sender, message in entries:
            if sender == by and "method" in message and "id" in message:
                given = answers.get(_key(connection, message["id"]), [])
                calls.append(Call(message["id"], message["method"], message.get("params"), given))
        return calls

    def told(self):
        """Returns the server's messages in order, each with the request that it responds to, if any."""
        asked, told = {}, []
        for connection, sender, message in self._entries():
            key = _key(connection, message.get("id"))
            if sender == CLIENT and "method" in message and "id" in message:
                asked[key] = message
            elif sender == SERVER:
                told.append((message, None if "method" in message else asked.get(key)))
        return told

    def notified(self, sender):
        """Returns the methods of the notifications of one side."""
        return [
            message["method"]
            for who, message in self.messages()
            if who == sender and "method" in message and "id" not in message
        ]

    def tail(self, count=20):
        lines = [f"{sender}: {_short(message)}" for sender, message in self.messages()[-count:]]
        return lines + [f"oddity: {oddity}" for oddity in self.oddities]


class Call:
    """One request and its responses."""

    def __init__(self, identity, method, params, answers):
        self.identity = identity
        self.method = method
        self.params = params
        self.answers = answers

    @property
    def result(self):
        return self.answers[0].get("result") if self.answers else None

    @property
    def error_code(self):
        error = self.answers[0].get("error") if self.answers else None
        return error.get("code") if error else None


def _key(connection, identity):
    # Each connection has its own ids, and 1 and "1" differ.
    return connection, json.dumps(identity)


def _short(message, limit=400):
    text = json.dumps(message, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


class Frames:
    """Reads one direction of an upgraded connection: the HTTP head, then websocket frames."""

    def __init__(self, sender, record, connection=0):
        self._sender = sender
        self._record = record
        self._connection = connection
        self._bytes = bytearray()
        self._head_seen = False
        self._upgraded = True
        self._parts = []

    def feed(self, chunk):
        self._bytes += chunk
        if not self._head_seen:
            self._read_head()
        if not self._upgraded:
            self._record.add_refusal(self._bytes.decode("utf-8", "replace"))
            self._bytes.clear()
        while self._head_seen and self._upgraded and self._read_frame():
            pass

    def _read_head(self):
        end = self._bytes.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._bytes[:end].decode("latin-1")
        del self._bytes[: end + 4]
        self._head_seen = True
        # A plain body follows a rejection, not frames.
        self._upgraded = self._sender == CLIENT or head.split(" ")[1:2] == ["101"]
        self._record.add_head(self._sender, head)

    def _read_frame(self):
        data = self._bytes
        if len(data) < 2:
            return False
        final, reserved, opcode = data[0] & 0x80, data[0] & 0x70, data[0] & 0x0F
        masked, length, at = data[1] & 0x80, data[1] & 0x7F, 2
        extended = {126: 2, 127: 8}.get(length, 0)
        if len(data) < at + extended:
            return False
        if extended:
            length = int.from_bytes(data[at : at + extended], "big")
            at += extended
        mask = bytes(data[at : at + 4]) if masked else b""
        at += len(mask)
        if len(data) < at + length:
            return False
        payload = bytes(data[at : at + length])
        del data[: at + length]
        if mask:
            payload = _unmask(payload, mask)
        if reserved:
            self._record.note(f"{self._sender} sent a frame with reserved bits")
        if bool(masked) != (self._sender == CLIENT):
            self._record.note(f"{self._sender} sent a frame with the wrong masking")
        self._take(opcode, bool(final), payload)
        return True

    def _take(self, opcode, final, payload):
        if opcode in (_CLOSE, _PING, _PONG):
            return
        if opcode == _BINARY:
            self._record.note(f"{self._sender} sent a binary frame")
        self._parts.append(payload)
        if final:
            text = b"".join(self._parts).decode("utf-8", "replace")
            self._record.add(self._sender, text, self._connection)
            self._parts.clear()


def _unmask(payload, mask):
    repeated = (mask * (len(payload) // 4 + 1))[: len(payload)]
    both = int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")
    return both.to_bytes(len(payload), "big")


class Relay:
    """A relay between a socket client and the server, on the same kind of socket.

    It changes no bytes except the name of the host on TCP.
    """

    def __init__(self, record, upstream, listener, host=None):
        self._record = record
        self._upstream = upstream
        self._listener = listener
        self._host = host
        self._sockets = []
        self._connections = 0
        self._closed = False
        #: The server's held data and its receivers; None while the relay forwards all.
        self._held = None
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @classmethod
    def tcp(cls, record, port):
        listener = socket.create_server(("127.0.0.1", 0))
        own = f"127.0.0.1:{listener.getsockname()[1]}"
        relay = cls(
            record,
            lambda: socket.create_connection(("127.0.0.1", port)),
            listener,
            # The server accepts only its own address as host, so the relay writes that, as any
            # reverse proxy does. The record has the client's head unchanged.
            host=(f"Host: {own}".lower().encode(), f"Host: 127.0.0.1:{port}".encode()),
        )
        relay.address = own
        return relay

    @classmethod
    def unix(cls, record, server_path, own_path):
        def connect():
            stream = socket.socket(socket.AF_UNIX)
            stream.connect(str(server_path))
            return stream

        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(own_path))
        listener.listen()
        relay = cls(record, connect, listener)
        relay.address = str(own_path)
        return relay

    def hold(self):
        """Holds the server's data from now on; the record still gets it."""
        with self._lock:
            self._held = []

    def let_go(self):
        """Sends the held data to the client, and forwards again."""
        with self._lock:
            for sink, chunk in self._held:
                sink.sendall(chunk)
            self._held = None

    def close(self):
        self._closed = True
        for stream in [self._listener, *self._sockets]:
            _end(stream)

    def _accept(self):
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = self._upstream()
            except OSError:
                self._record.note(NO_SERVER)
                _end(client)
                continue
            self._sockets += [client, server]
            self._connections += 1
            for source, sink, sender in ((client, server, CLIENT), (server, client, SERVER)):
                frames = Frames(sender, self._record, self._connections)
                arguments = (source, sink, frames, sender)
                threading.Thread(target=self._copy, args=arguments, daemon=True).start()

    def _copy(self, source, sink, frames, sender):
        head = bytearray() if sender == CLIENT and self._host else None
        try:
            while chunk := source.recv(_CHUNK):
                # Recorded first: when a client has a response, the record has it too.
                frames.feed(chunk)
                if head is not None:
                    head += chunk
                    if b"\r\n\r\n" not in head:
                        continue
                    chunk, head = self._with_host(bytes(head)), None
                self._send(sink, chunk, sender)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            _end(sink)

    def _send(self, sink, chunk, sender):
        if sender == CLIENT:
            sink.sendall(chunk)
            return
        with self._lock:
            if self._held is None:
                sink.sendall(chunk)
            else:
                self._held.append((sink, chunk))

    def _with_host(self, head):
        own, server = self._host
        at = head.lower().find(own)
        return head if at < 0 else head[:at] + server + head[at + len(own) :]


def _end(stream):
    # Closing alone does not wake a thread that waits in recv or accept.
    for act in (lambda: stream.shutdown(socket.SHUT_RDWR), stream.close):
        try:
            act()
        except OSError:
            pass
