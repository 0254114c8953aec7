"""Reproducible archives: the same entries give the same bytes."""

import gzip
import io
import tarfile
import zipfile
from dataclasses import dataclass

#: The earliest time that a zip can store.
_MOMENT = (1980, 1, 1, 0, 0, 0)
_MOMENT_S = 315532800
#: The highest level takes three times as long and saves a hundredth of the size.
_LEVEL = 6


@dataclass
class Entry:
    """One file of an archive."""

    path: str
    data: bytes
    runs: bool = False

    @property
    def mode(self):
        return 0o755 if self.runs else 0o644


def tar_gz(entries):
    """Returns a compressed tar, sorted by path."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for entry in _in_order(entries):
            about = tarfile.TarInfo(entry.path)
            about.size = len(entry.data)
            about.mode = entry.mode
            about.mtime = _MOMENT_S
            tar.addfile(about, io.BytesIO(entry.data))
    packed = io.BytesIO()
    # No file name and no time in the gzip header.
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=_LEVEL, mtime=0) as out:
        out.write(plain.getvalue())
    return packed.getvalue()


def zipped(entries):
    """Returns a zip, in the given order."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as out:
        for entry in entries:
            about = zipfile.ZipInfo(entry.path, _MOMENT)
            about.create_system = 3  # Unix, for the modes.
            about.external_attr = (0o100000 | entry.mode) << 16
            about.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(about, entry.data)
    return packed.getvalue()


def _in_order(entries):
    return sorted(entries, key=lambda entry: entry.path)
