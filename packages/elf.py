"""What a binary says of itself in its headers: a little of ELF, for 64 bits and little ends."""

import struct

_SYMBOLS = 2  # a section
_INTERPRETER = 3  # a segment: the loader of a C library


def is_elf(program):
    return program[:6] == b"\x7fELF\x02\x01"


def is_static(program):
    """Does it start without a loader?"""
    begin, size, count = _table(program, 32, 54)
    kinds = [struct.unpack_from("<I", program, begin + at * size)[0] for at in range(count)]
    return _INTERPRETER not in kinds


def is_stripped(program):
    """Is there no table of the names of functions?"""
    begin, size, count = _table(program, 40, 58)
    kinds = [struct.unpack_from("<I", program, begin + at * size + 4)[0] for at in range(count)]
    return _SYMBOLS not in kinds


def _table(program, at, about):
    """Where it begins, how long each entry is, and how many there are."""
    (begin,) = struct.unpack_from("<Q", program, at)
    return begin, *struct.unpack_from("<HH", program, about)
