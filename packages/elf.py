"""A minimal reader of ELF headers, 64-bit and little-endian."""

import struct

_SYMBOLS = 2  # a section
_INTERPRETER = 3  # a segment: the loader of a C library


def is_elf(program):
    return program[:6] == b"\x7fELF\x02\x01"


def is_static(program):
    """Returns whether it starts without a dynamic loader."""
    begin, size, count = _table(program, 32, 54)
    kinds = [struct.unpack_from("<I", program, begin + at * size)[0] for at in range(count)]
    return _INTERPRETER not in kinds


def is_stripped(program):
    """Returns whether it has no symbol table."""
    begin, size, count = _table(program, 40, 58)
    kinds = [struct.unpack_from("<I", program, begin + at * size + 4)[0] for at in range(count)]
    return _SYMBOLS not in kinds


def _table(program, at, about):
    """Returns the offset of a table, the size of an entry and the number of entries."""
    (begin,) = struct.unpack_from("<Q", program, at)
    return begin, *struct.unpack_from("<HH", program, about)
