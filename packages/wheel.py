"""A wheel: a zip with a list of its contents (PEP 427)."""

import base64
import hashlib

from archives import Entry, zipped

#: A static binary needs no C library, so it runs on systems with glibc and with musl.
_PLATFORM = "manylinux_2_17_x86_64.musllinux_1_2_x86_64"


def wheel(name, version, summary, modules, scripts, licences, bills):
    """Returns the file name and the bytes. `modules` are for Python's search path, `scripts` for the shell's."""
    about = f"{name}-{version}.dist-info"
    entries = [
        *modules,
        *(it.below(f"{name}-{version}.data/scripts") for it in scripts),
        *(it.below(f"{about}/licenses") for it in licences),
        *(it.below(f"{about}/sboms") for it in bills),
        Entry(f"{about}/METADATA", _metadata(name, version, summary, licences).encode()),
        Entry(f"{about}/WHEEL", _wheel().encode()),
    ]
    entries.sort(key=lambda entry: entry.path)
    # The list of all entries comes last.
    entries.append(_record(f"{about}/RECORD", entries))
    return f"{name}-{version}-py3-none-{_PLATFORM}.whl", zipped(entries)


def _metadata(name, version, summary, licences):
    return "".join(
        f"{line}\n"
        for line in (
            "Metadata-Version: 2.1",
            f"Name: {name}",
            f"Version: {version}",
            f"Summary: {summary}",
            "License: Apache-2.0",
            *(f"License-File: {it.path}" for it in licences),
            "Requires-Python: >=3.9",
        )
    )


def _wheel():
    tags = [f"Tag: py3-none-{platform}\n" for platform in _PLATFORM.split(".")]
    return "".join(
        [
            "Wheel-Version: 1.0\n",
            "Generator: raddle-packages\n",
            # Installed with platform-specific files, not with pure Python.
            "Root-Is-Purelib: false\n",
            *tags,
        ]
    )


def _record(path, entries):
    lines = [f"{it.path},sha256={_digest(it.data)},{len(it.data)}\n" for it in entries]
    return Entry(path, "".join([*lines, f"{path},,\n"]).encode())


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
