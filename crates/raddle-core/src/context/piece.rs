//! An entry as it is handed out: shared, and with room for the words in which a model's wire writes it.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;

use super::Entry;

/// An entry that is read with every call of the model, and written only for the first. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Piece(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    entry: Entry,
    written: OnceLock<Written>,
}

/// How one vendor is told of it; nothing if it is not.
#[derive(Debug)]
struct Written {
    vendor: Arc<str>,
    json: Option<Arc<RawValue>>,
}

impl Piece {
    /// What `write` makes of the entry for a vendor, which for the first vendor is asked once.
    pub fn written<E>(
        &self,
        vendor: &Arc<str>,
        write: impl FnOnce(&Entry) -> Result<Option<Arc<RawValue>>, E>,
    ) -> Result<Option<Arc<RawValue>>, E> {
        if let Some(written) = self.0.written.get()
            && written.vendor == *vendor
        {
            return Ok(written.json.clone());
        }
        let json = write(&self.0.entry)?;
        // A later vendor finds the place taken.
        let _ = self.0.written.set(Written {
            vendor: vendor.clone(),
            json: json.clone(),
        });
        Ok(json)
    }
}

impl From<Entry> for Piece {
    fn from(entry: Entry) -> Self {
        Self(Arc::new(Inner {
            entry,
            written: OnceLock::new(),
        }))
    }
}

impl Deref for Piece {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.0.entry
    }
}

impl PartialEq for Piece {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn the_first_vendor_is_asked_once_and_others_each_time() {
        let piece = Piece::from(Entry::Note("n".to_owned()));
        let vendors: [Arc<str>; 2] = ["a".into(), "b".into()];
        let mut asked = Vec::new();
        for at in [0, 0, 1, 1, 0] {
            let written = piece.clone().written(&vendors[at], |entry| {
                asked.push(at);
                let text = format!("{} {entry:?}", vendors[at]);
                to_raw_value(&text).map(|json| Some(json.into()))
            });
            let written = written.expect("JSON").expect("an item");
            let wanted = format!(r#""{} Note(\"n\")""#, vendors[at]);
            assert_eq!(written.get(), wanted);
        }
        assert_eq!(asked, [0, 1, 1]);
    }
}
