//! An entry as it is handed out: shared, and with room for the words in which a model's wire writes it.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;

use super::ContextEntry;

/// An entry that is read with every call of the model, and written only for the first. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SharedEntry(Arc<EntryCell>);

#[derive(Debug)]
struct EntryCell {
    entry: ContextEntry,
    written: OnceLock<VendorJson>,
}

/// How one vendor is told of it; nothing if it is not.
#[derive(Debug)]
struct VendorJson {
    vendor: Arc<str>,
    json: Option<Arc<RawValue>>,
}

impl SharedEntry {
    /// What `write` makes of the entry for a vendor, which for the first vendor is asked once.
    pub fn written<E>(
        &self,
        vendor: &Arc<str>,
        write: impl FnOnce(&ContextEntry) -> Result<Option<Arc<RawValue>>, E>,
    ) -> Result<Option<Arc<RawValue>>, E> {
        if let Some(written) = self.0.written.get()
            && written.vendor == *vendor
        {
            return Ok(written.json.clone());
        }
        let json = write(&self.0.entry)?;
        // A later vendor finds the place taken.
        let _ = self.0.written.set(VendorJson {
            vendor: vendor.clone(),
            json: json.clone(),
        });
        Ok(json)
    }
}

impl From<ContextEntry> for SharedEntry {
    fn from(entry: ContextEntry) -> Self {
        Self(Arc::new(EntryCell {
            entry,
            written: OnceLock::new(),
        }))
    }
}

impl Deref for SharedEntry {
    type Target = ContextEntry;

    fn deref(&self) -> &ContextEntry {
        &self.0.entry
    }
}

impl PartialEq for SharedEntry {
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
        let piece = SharedEntry::from(ContextEntry::Note("n".to_owned()));
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
