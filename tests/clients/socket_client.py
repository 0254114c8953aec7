"""The small client of `stdio_client`, on a websocket."""

import base64
import json
import os
import socket
import struct

from harness import DEADLINE_S, require
from stdio_client import Client

_TEXT, _PONG = 1, 10


class SocketClient(Client):
    """Connects to a running server, with a token."""

    def __init__(self, bench, port, token):
        # A turn may be slow on a busy machine.
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=2 * DEADLINE_S)
        bench.afterwards(self._socket.close)
        key = base64.b64encode(os.urandom(16)).decode()
        head = [
            "GET / HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
            f"Authorization: Bearer {token}",
        ]
        self._socket.sendall("\r\n".join([*head, "", ""]).encode())
        self._reader = self._socket.makefile("rb")
        require(b" 101 " in self._reader.readline(), "the server rejects the websocket")
        while self._reader.readline() != b"\r\n":
            pass
        super().__init__(bench.workspace)

    def leave(self):
        self._socket.shutdown(socket.SHUT_WR)
        self._socket.close()

    def _write(self, message):
        self._frame(_TEXT, json.dumps(message).encode())

    def _read(self):
        text = b""
        while True:
            head, length = self._reader.read(2)
            length &= 127
            if length == 126:
                (length,) = struct.unpack(">H", self._reader.read(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self._reader.read(8))
            payload = self._reader.read(length)
            match head & 15:
                case 0 | 1:
                    text += payload
                    if head & 128:
                        return text.decode()
                case 9:
                    self._frame(_PONG, payload)
                case 8:
                    return None

    def _frame(self, kind, payload):
        size = len(payload)
        if size < 126:
            length = bytes([128 | size])
        elif size < 1 << 16:
            length = bytes([128 | 126]) + struct.pack(">H", size)
        else:
            length = bytes([128 | 127]) + struct.pack(">Q", size)
        # A mask of zeros leaves the payload unchanged.
        self._socket.sendall(bytes([128 | kind]) + length + bytes(4) + payload)
