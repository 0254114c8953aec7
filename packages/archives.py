"""Reproducible archives: the same entries give the same bytes."""

import gzip
import io
import tarfile
import zipfile
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

#: The earliest time that a zip can store.
_MOMENT = (1980, 1, 1, 0, 0, 0)
MOMENT_S = 315532800
#: The highest level takes three times as long and saves a hundredth of the size.
LEVEL = 6


@dataclass
class Entry:
    """One file of an archive, or a link."""

    path: str
    data: bytes
    runs: bool = False
    #: Of a symbolic link: its target. It has no data.
    target: str = ""

    @property
    def mode(self):
        if self.target:
            return 0o777
        return 0o755 if self.runs else 0o644

    def below(self, folder):
        """Returns the entry with its path below a folder."""
        return replace(self, path=f"{folder}/{self.path}")


def tar_gz(entries, with_folders=False):
    """Returns a compressed tar, sorted by path. `with_folders` adds the folders above the files."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for folder in folders(entries) if with_folders else ():
            about = tarfile.TarInfo(f"{folder}/")
            about.type = tarfile.DIRTYPE
            about.mode = 0o755
            about.mtime = MOMENT_S
            tar.addfile(about)
        for entry in _in_order(entries):
            about = tarfile.TarInfo(entry.path)
            about.size = len(entry.data)
            about.mode = entry.mode
            about.mtime = MOMENT_S
            if entry.target:
                about.type = tarfile.SYMTYPE
                about.linkname = entry.target
            tar.addfile(about, io.BytesIO(entry.data))
    return gzipped(plain.getvalue())


def gzipped(data):
    """Returns the data compressed, with no file name and no time in the header."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=LEVEL, mtime=0) as out:
        out.write(data)
    return packed.getvalue()


def folders(entries):
    """Returns the folders above the files, each before those inside it."""
    above = {str(it) for entry in entries for it in PurePosixPath(entry.path).parents}
    prefix = "./" if any(entry.path.startswith("./") for entry in entries) else ""
    return sorted(f"{prefix}{it}" for it in above - {".", "/"})


def zipped(entries):
    """Returns a zip, in the given order."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as out:
        for entry in entries:
            about = zipfile.ZipInfo(entry.path, _MOMENT)
            about.create_system = 3  # Unix, for the modes.
            about.external_attr = (0o100000 | entry.mode) << 16
            about.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(about, entry.data)
    return packed.getvalue()


def _in_order(entries):
    return sorted(entries, key=lambda entry: entry.path)
