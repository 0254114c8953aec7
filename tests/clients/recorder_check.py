"""A check of the recorder itself."""

import json

from harness import require_equal
from recorder import CLIENT, SERVER, Frames, Record

_MASK = b"\x11\x22\x33\x44"


def frames_are_read(bench):
    """Frames: short and long, whole and fragmented, masked and not, in chunks of any size."""
    messages = [{"id": 1, "method": "a"}, {"pad": "x" * 200}, {"pad": "ü" * 40_000}]
    for sender, mask, head in (
        (CLIENT, _MASK, b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"),
        (SERVER, b"", b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    ):
        stream = bytearray(head)
        for message in messages:
            body = json.dumps(message, ensure_ascii=False).encode()
            half = len(body) // 2
            stream += _frame(0x1, body[:half], mask, final=False)
            stream += _frame(0x9, b"between", mask)
            stream += _frame(0x0, body[half:], mask)
            stream += _frame(0x1, body, mask)
        twice = [message for message in messages for _ in range(2)]
        for step in (1, 7, 4096, len(stream)):
            record = Record()
            frames = Frames(sender, record)
            for at in range(0, len(stream), step):
                frames.feed(bytes(stream[at : at + step]))
            require_equal("the messages", record.messages(), [(sender, it) for it in twice])
            require_equal("the oddities", record.oddities, [])
            require_equal("the heads", len(record.heads), 1)


def what_is_wrong_is_noted(bench):
    for stream in (
        _frame(0x1, b"not json", _MASK),
        _frame(0x1, b"[1]", _MASK),
        _frame(0x2, b"{}", _MASK),
        _frame(0x1, b"{}", b""),
        bytes([0xC1]) + _frame(0x1, b"{}", _MASK)[1:],
    ):
        record = Record()
        Frames(CLIENT, record).feed(b"GET / HTTP/1.1\r\n\r\n" + stream)
        require_equal(f"how many oddities {stream!r} has", len(record.oddities), 1)


def _frame(opcode, payload, mask, final=True):
    length = len(payload)
    if length < 126:
        size = bytes([length])
    elif length < 1 << 16:
        size = bytes([126]) + length.to_bytes(2, "big")
    else:
        size = bytes([127]) + length.to_bytes(8, "big")
    size = bytes([size[0] | (0x80 if mask else 0)]) + size[1:]
    if mask:
        payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    return bytes([opcode | (0x80 if final else 0)]) + size + mask + payload


CHECKS = {
    "recorder-frames": frames_are_read,
    "recorder-oddities": what_is_wrong_is_noted,
}
