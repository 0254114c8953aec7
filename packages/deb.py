"""Debian packages: an `ar` archive of a version, a control archive and a data archive."""

import hashlib

from archives import Entry, tar_gz

_FORMAT = b"2.0\n"


def deb(name, version, architecture, summary, description, recommends, entries):
    """Returns the package. The paths of the entries begin below the root, without a slash."""
    size_kib = sum(-(-len(it.data) // 1024) for it in entries)
    control = {
        "Package": name,
        "Version": f"{version}-1",
        "Architecture": architecture,
        "Maintainer": "The authors of Raddle <authors@raddle.invalid>",
        "Installed-Size": str(size_kib),
        "Recommends": ", ".join(recommends),
        "Section": "devel",
        "Priority": "optional",
        "Description": "\n ".join([summary.rstrip("."), *description.splitlines()]),
    }
    about = "".join(f"{key}: {value}\n" for key, value in control.items())
    ordered = sorted(entries, key=lambda it: it.path)
    sums = "".join(f"{hashlib.md5(it.data).hexdigest()}  {it.path}\n" for it in ordered if not it.target)
    members = [
        ("debian-binary", _FORMAT),
        ("control.tar.gz", _tree([Entry("control", about.encode()), Entry("md5sums", sums.encode())])),
        ("data.tar.gz", _tree(entries)),
    ]
    return b"!<arch>\n" + b"".join(_member(*it) for it in members)


def _tree(entries):
    return tar_gz([it.below(".") for it in entries], with_folders=True)


def _member(name, data):
    """Returns a member of the `ar` archive: a header of 60 bytes and the data, padded to an even length."""
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n"
    return header.encode() + data + b"\n" * (len(data) % 2)
