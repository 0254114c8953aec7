"""RPM packages of format 4: a lead, a header of digests, a header of metadata, and a cpio archive."""

import hashlib
import struct
from dataclasses import dataclass

from archives import LEVEL, MOMENT_S, folders, gzipped

_LEAD_MAGIC = b"\xed\xab\xee\xdb"
_HEADER_MAGIC = b"\x8e\xad\xe8\x01\0\0\0\0"
#: Tags of the two regions: the header of digests, and the header of metadata.
_SIGNATURES, _IMMUTABLE = 62, 63
#: Types of values: 16 and 32 bits, a string, bytes, a list of strings, a translated string.
_INT16, _INT32, _STRING, _BYTES, _STRINGS, _TRANSLATED = 3, 4, 6, 7, 8, 9
#: "This version or an earlier one", required of RPM itself.
_AT_MOST_OF_RPM = 0x1000000 | 0x2 | 0x8
_EQUAL = 0x8
_SHA256 = 8
_FOLDER, _FILE, _LINK = 0o040000, 0o100000, 0o120000
_KINDS = 0o170000
#: Features of RPM that the package uses.
_FEATURES = [
    ("rpmlib(CompressedFileNames)", "3.0.4-1"),
    ("rpmlib(FileDigests)", "4.6.0-1"),
    ("rpmlib(PayloadFilesHavePrefix)", "4.0-1"),
]


@dataclass
class _Item:
    """A file, a link or a folder of the package, with its absolute path. The data of a link is its target."""

    path: str
    data: bytes
    mode: int

    @property
    def kind(self):
        return self.mode & _KINDS


def rpm(name, version, architecture, summary, description, licence, recommends, entries, own_folders):
    """Returns the package. The paths of the entries begin below the root, without a slash. Folders that
    `own_folders` names are removed with the package."""
    items = [
        _Item(f"/{it.path}", it.target.encode() or it.data, (_LINK if it.target else _FILE) | it.mode)
        for it in entries
    ]
    items += [_Item(f"/{it}", b"", _FOLDER | 0o755) for it in folders(entries) if it in own_folders]
    items.sort(key=lambda it: it.path)
    cpio = _cpio(items)
    payload = gzipped(cpio)
    header = _header(_IMMUTABLE, {
        100: (_STRINGS, ["C"]),
        1000: (_STRING, name),
        1001: (_STRING, version),
        1002: (_STRING, "1"),
        1004: (_TRANSLATED, [summary.rstrip(".")]),
        1005: (_TRANSLATED, [description]),
        1006: (_INT32, [MOMENT_S]),
        1007: (_STRING, "localhost"),
        1009: (_INT32, [sum(len(it.data) for it in items)]),
        1014: (_STRING, licence),
        1016: (_TRANSLATED, ["Development/Tools"]),
        1021: (_STRING, "linux"),
        1022: (_STRING, architecture),
        **_files(items),
        1044: (_STRING, f"{name}-{version}-1.src.rpm"),
        1047: (_STRINGS, [name]),
        1048: (_INT32, [_AT_MOST_OF_RPM] * len(_FEATURES)),
        1049: (_STRINGS, [it for it, _ in _FEATURES]),
        1050: (_STRINGS, [it for _, it in _FEATURES]),
        1064: (_STRING, "4.18.0"),
        1112: (_INT32, [_EQUAL]),
        1113: (_STRINGS, [f"{version}-1"]),
        1124: (_STRING, "cpio"),
        1125: (_STRING, "gzip"),
        1126: (_STRING, str(LEVEL)),
        5011: (_INT32, [_SHA256]),
        5046: (_STRINGS, recommends),
        5047: (_STRINGS, [""] * len(recommends)),
        5048: (_INT32, [0] * len(recommends)),
        5062: (_STRING, "utf-8"),
        5092: (_STRINGS, [hashlib.sha256(payload).hexdigest()]),
        5093: (_INT32, [_SHA256]),
    })
    digests = _header(_SIGNATURES, {
        269: (_STRING, hashlib.sha1(header).hexdigest()),
        273: (_STRING, hashlib.sha256(header).hexdigest()),
        1000: (_INT32, [len(header) + len(payload)]),
        1004: (_BYTES, hashlib.md5(header + payload).digest()),
        1007: (_INT32, [len(cpio)]),
    })
    padding = b"\0" * (-len(digests) % 8)
    return _lead(f"{name}-{version}-1") + digests + padding + header + payload


def _files(items):
    """Returns the tags with one value for each file."""
    count = len(items)
    above = sorted({_split(it.path)[0] for it in items})
    digests = [hashlib.sha256(it.data).hexdigest() if it.kind == _FILE else "" for it in items]
    targets = [it.data.decode() if it.kind == _LINK else "" for it in items]
    return {
        1028: (_INT32, [len(it.data) for it in items]),
        1030: (_INT16, [it.mode for it in items]),
        1033: (_INT16, [0] * count),
        1034: (_INT32, [MOMENT_S] * count),
        1035: (_STRINGS, digests),
        1036: (_STRINGS, targets),
        1037: (_INT32, [0] * count),
        1039: (_STRINGS, ["root"] * count),
        1040: (_STRINGS, ["root"] * count),
        1045: (_INT32, [0xFFFFFFFF] * count),
        1095: (_INT32, [1] * count),
        1096: (_INT32, list(range(1, count + 1))),
        1097: (_STRINGS, [""] * count),
        1116: (_INT32, [above.index(_split(it.path)[0]) for it in items]),
        1117: (_STRINGS, [_split(it.path)[1] for it in items]),
        1118: (_STRINGS, above),
    }


def _split(path):
    folder, _, name = path.rpartition("/")
    return f"{folder}/", name


def _lead(name):
    """Returns the first 96 bytes, which newer versions of RPM read only to recognise the format."""
    return struct.pack(">4sBBHH66sHH16x", _LEAD_MAGIC, 3, 0, 0, 1, name.encode()[:65], 1, 5)


def _header(region, tags):
    """Returns a header: an index of 16 bytes for each tag, then the values. The region covers all of it:
    its own entry comes first and names a trailer at the end of the values."""
    index, store = [], b""
    for tag, (kind, value) in sorted(tags.items()):
        data, count, alignment = _encoded(kind, value)
        store += b"\0" * (-len(store) % alignment)
        index.append(struct.pack(">IIII", tag, kind, len(store), count))
        store += data
    size = 16 * (len(index) + 1)
    index.insert(0, struct.pack(">IIII", region, _BYTES, len(store), 16))
    store += struct.pack(">IIiI", region, _BYTES, -size, 16)
    return _HEADER_MAGIC + struct.pack(">II", len(index), len(store)) + b"".join(index) + store


def _encoded(kind, value):
    """Returns the bytes of a value, its count, and its alignment."""
    if kind == _INT16:
        return struct.pack(f">{len(value)}H", *value), len(value), 2
    if kind == _INT32:
        return struct.pack(f">{len(value)}I", *value), len(value), 4
    if kind == _BYTES:
        return value, len(value), 1
    values = [value] if kind == _STRING else value
    return b"".join(it.encode() + b"\0" for it in values), len(values), 1


def _cpio(items):
    """Returns the files as a cpio archive of the format `newc`."""
    archive = b"".join(_record(at + 1, f".{it.path}", it.mode, it.data) for at, it in enumerate(items))
    return archive + _record(0, "TRAILER!!!", 0, b"")


def _record(inode, name, mode, data):
    links = 2 if mode & _KINDS == _FOLDER else 1
    time = MOMENT_S if mode else 0
    fields = [inode, mode, 0, 0, links, time, len(data), 0, 0, 0, 0, len(name) + 1, 0]
    head = b"070701" + "".join(f"{it:08x}" for it in fields).encode() + name.encode() + b"\0"
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)
