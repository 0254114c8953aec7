//! Reads pages of an SQLite file without SQLite: rows are recognised by their shape, wherever they
//! are.
//!
//! Nothing here is trusted. The caller verifies the content of a damaged page against hashes.

/// A row or index entry: the part that lies in its page.
#[derive(Debug)]
pub(super) struct Cell {
    /// Row id; `None` for an index entry.
    pub(super) rowid: Option<i64>,
    /// Column types, in the numbering of the file format.
    pub(super) types: Vec<u64>,
    /// Offset of the columns.
    pub(super) columns: usize,
    /// Total length in bytes.
    pub(super) bytes: usize,
    /// Part of the payload that lies in the page.
    pub(super) local: Vec<u8>,
    /// Number of the first overflow page, if the payload does not fit into the page.
    pub(super) overflow: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ColumnValue {
    Null,
    Integer(i64),
    Bytes(Vec<u8>),
    Text(String),
}

/// Content of a page.
#[derive(Debug, Default)]
pub(super) struct PageCells {
    /// Cells, each with its offset in the page.
    pub(super) cells: Vec<(usize, Cell)>,
    /// Whether a part of the page could not be read.
    pub(super) broken: bool,
}

const TABLE_LEAF: u8 = 0x0d;
const INDEX_LEAF: u8 = 0x0a;
const INDEX_INTERIOR: u8 = 0x02;

/// Returns the rows and entries of a page. `header` is the offset of the page's header, which is
/// not zero in the file's first page.
pub(super) fn read(page: &[u8], header: usize) -> PageCells {
    let mut result = PageCells::default();
    let Some(kind) = page.get(header).copied() else {
        return result;
    };
    let (kind, pointers) = match kind {
        // An overflow page or an empty one. It holds text of users and models, which must not be
        // mistaken for rows.
        0 => {
            result.broken = true;
            return result;
        }
        INDEX_LEAF => (INDEX_LEAF, header + 8),
        INDEX_INTERIOR => (INDEX_INTERIOR, header + 12),
        // A leaf of a table, or a page with a damaged type byte, which is tried as one.
        _ => (TABLE_LEAF, header + 8),
    };
    let count = number(page, header + 3, 2).unwrap_or(0);
    for at in 0..count.min(page.len() / 4) {
        let start = number(page, pointers + 2 * at, 2);
        match start.and_then(|start| Some((start, cell(page, start, kind)?))) {
            Some(cell) => result.cells.push(cell),
            None => result.broken = true,
        }
    }
    result
}

/// Parses the row or entry at an offset, in a page of this kind.
pub(super) fn cell(page: &[u8], start: usize, kind: u8) -> Option<Cell> {
    let mut at = start;
    if kind == INDEX_INTERIOR {
        at += 4;
    }
    let bytes = usize::try_from(varint(page, &mut at)?).ok()?;
    let in_table = !matches!(kind, INDEX_LEAF | INDEX_INTERIOR);
    let rowid = if in_table {
        Some(varint(page, &mut at)?.cast_signed())
    } else {
        None
    };
    let local_len = local_bytes(page.len(), bytes, in_table)?;
    let local = page.get(at..at.checked_add(local_len)?)?.to_vec();
    let overflow = if local_len < bytes {
        Some(u32::try_from(number(page, at + local_len, 4)?).ok()?)
    } else {
        None
    };
    let mut next = 0;
    let columns = usize::try_from(varint(&local, &mut next)?).ok()?;
    let mut types = Vec::new();
    while next < columns {
        types.push(varint(&local, &mut next)?);
    }
    Some(Cell {
        rowid,
        types,
        columns,
        bytes,
        local,
        overflow,
    })
}

/// Returns how much of a row lies in its page, by the rules of the file format.
fn local_bytes(page: usize, bytes: usize, in_table: bool) -> Option<usize> {
    let usable = page;
    let most = if in_table {
        usable.checked_sub(35)?
    } else {
        (usable.checked_sub(12)? * 64 / 255).checked_sub(23)?
    };
    if bytes <= most {
        return Some(bytes);
    }
    let least = (usable.checked_sub(12)? * 32 / 255).checked_sub(23)?;
    let size = least + bytes.checked_sub(least)? % usable.checked_sub(4)?;
    Some(if size <= most { size } else { least })
}

impl Cell {
    /// Returns the values of its columns, given the whole payload.
    pub(super) fn values(&self, whole: &[u8]) -> Option<Vec<ColumnValue>> {
        let mut at = self.columns;
        let mut values = Vec::with_capacity(self.types.len());
        for kind in &self.types {
            let bytes = width(*kind)?;
            let raw = whole.get(at..at.checked_add(bytes)?)?;
            at += bytes;
            values.push(match kind {
                0 => ColumnValue::Null,
                1..=6 => ColumnValue::Integer(integer(raw)),
                8 => ColumnValue::Integer(0),
                9 => ColumnValue::Integer(1),
                kind if *kind >= 12 && kind % 2 == 0 => ColumnValue::Bytes(raw.to_vec()),
                kind if *kind >= 13 => ColumnValue::Text(String::from_utf8(raw.to_vec()).ok()?),
                _ => return None,
            });
        }
        Some(values)
    }
}

fn width(kind: u64) -> Option<usize> {
    match kind {
        0 | 8 | 9 => Some(0),
        1..=4 => usize::try_from(kind).ok(),
        5 => Some(6),
        6 => Some(8),
        12.. => usize::try_from((kind - 12) / 2).ok(),
        _ => None,
    }
}

/// Whether a type is that of an integer.
pub(super) fn is_integer(kind: u64) -> bool {
    matches!(kind, 1..=6 | 8 | 9)
}

fn integer(raw: &[u8]) -> i64 {
    let negative = raw.first().is_some_and(|byte| byte & 0x80 != 0);
    let start = if negative { -1_i64 } else { 0 };
    raw.iter()
        .fold(start, |sum, byte| sum << 8 | i64::from(*byte))
}

/// Reads a big-endian number of a few bytes.
pub(super) fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let raw = bytes.get(at..at.checked_add(length)?)?;
    Some(
        raw.iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte)),
    )
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0_u64;
    for count in 0..9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if count == 8 {
            return Some(value << 8 | u64::from(byte));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
