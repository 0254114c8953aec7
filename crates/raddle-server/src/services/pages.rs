//! Pages of a list that is in memory as a whole.

use crate::wire_error::{WireError, quoted};

/// The maximum number of entries of a page.
const LIMIT_MAX: u32 = 100;

/// Returns the items after the cursor, at most `limit`, and the cursor of the next page.
pub(crate) fn page<T>(
    items: Vec<T>,
    cursor: Option<&str>,
    limit: Option<u32>,
) -> Result<(Vec<T>, Option<String>), WireError> {
    let start = match cursor {
        None => 0,
        Some(cursor) => cursor
            .parse::<usize>()
            .ok()
            .filter(|start| *start <= items.len())
            .ok_or_else(|| {
                WireError::Refused(format!("invalid cursor: {}", quoted(cursor)).into())
            })?,
    };
    let limit = limit.unwrap_or(LIMIT_MAX).clamp(1, LIMIT_MAX) as usize;
    let end = items.len().min(start + limit);
    let next = (end < items.len()).then(|| end.to_string());
    Ok((items.into_iter().skip(start).take(limit).collect(), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_the_list_once() {
        let mut seen = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let (items, next) = page((0..5).collect(), cursor.as_deref(), Some(2)).expect("a page");
            seen.extend(items);
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        assert!(page(vec![1], Some("x"), None).is_err());
        assert!(page(vec![1], Some("2"), None).is_err());
        assert_eq!(page(vec![1, 2], None, Some(0)).expect("clamped").0, [1]);
    }
}
