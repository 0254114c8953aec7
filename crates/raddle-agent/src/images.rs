//! Images: kept beside the journal, read again for the model and for clients.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use raddle_core::ports::{AppendError, Blobs};
use raddle_core::{
    Blob, ContextEntry, Event, Image, Input, Item, Output, Record, RecordBody, RequestAnswer,
    Resolution,
};
use raddle_core::{ImageHeader, ItemBody, Refusal, SharedEntry, ThreadId};
use raddle_protocol as wire;

use crate::{AgentError, Threads};

/// How many bytes the images of one message, or of one answer of a tool, may have together: what is told of
/// it must fit into a client's queue.
pub const IMAGES_BYTES_MAX: usize = 10 << 20;

/// Why something is no image that can be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// It is somewhere else.
    #[error("the URL of an image must be a `data:` URL in base64")]
    NotData,
    /// It is something else.
    #[error("it is no image that models read; send PNG, JPEG, GIF or WebP")]
    NotAnImage,
    /// It unfolds to more than is shown to a model.
    #[error("it is {0}")]
    Size(String),
    /// It is too large, alone or with the others.
    #[error("images may have {IMAGES_BYTES_MAX} bytes together; send fewer, or smaller ones")]
    TooLarge,
}

/// An image that is not kept yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewImage {
    bytes: Vec<u8>,
    media: &'static str,
}

impl NewImage {
    /// Looks what bytes are.
    pub fn of(bytes: Vec<u8>) -> Result<Self, ImageError> {
        if bytes.len() > IMAGES_BYTES_MAX {
            return Err(ImageError::TooLarge);
        }
        let head = ImageHeader::read(&bytes).ok_or(ImageError::NotAnImage)?;
        if let Some(why) = head.objection() {
            return Err(ImageError::Size(why));
        }
        let media = head.media;
        Ok(Self { bytes, media })
    }

    /// Reads a `data:` URL. What it says of itself counts for nothing.
    pub fn of_url(url: &str) -> Result<Self, ImageError> {
        let scheme = url.get(..5).unwrap_or_default();
        let data = url
            .split_once(',')
            .filter(|_| scheme.eq_ignore_ascii_case("data:"));
        let (said, data) = data.ok_or(ImageError::NotData)?;
        if !said.to_ascii_lowercase().ends_with(";base64") {
            return Err(ImageError::NotData);
        }
        if data.len() / 4 > IMAGES_BYTES_MAX / 3 {
            return Err(ImageError::TooLarge);
        }
        Self::of(STANDARD.decode(data).map_err(|_| ImageError::NotData)?)
    }

    /// Keeps it. A record may name it now.
    pub(crate) async fn keep(self, blobs: &dyn Blobs) -> Result<Image, AppendError> {
        let kept = blobs.put(self.bytes, self.media.to_owned()).await;
        kept.map(Image::Blob)
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl Threads {
    /// Keeps an image for a thread. A record may name it now.
    pub async fn keep(&self, id: ThreadId, picture: NewImage) -> Result<Image, AgentError> {
        let kept = picture.keep(&*self.shared.blobs_of(id)).await;
        kept.map_err(|error| match error {
            AppendError::Unavailable(_) => AgentError::Unavailable,
            error => Refusal::NotStored(error.to_string()).into(),
        })
    }

    /// Puts the images of an item in the place of their names.
    pub async fn show(&self, id: ThreadId, item: &mut wire::ThreadItem) {
        if shows_images(item) {
            show(&*self.shared.blobs_of(id), item).await;
        }
    }
}

/// Whether an item may hold names of images.
fn shows_images(item: &wire::ThreadItem) -> bool {
    matches!(
        item,
        wire::ThreadItem::UserMessage(_) | wire::ThreadItem::DynamicToolCall(_)
    )
}

/// Puts images in the place of their names. One that cannot be read is named in words.
pub(crate) async fn show(blobs: &dyn Blobs, item: &mut wire::ThreadItem) {
    use wire::DynamicToolCallOutputContentItem as Content;
    match item {
        wire::ThreadItem::UserMessage(it) => {
            for part in &mut it.content {
                let wire::UserInput::Image(wire::ImageUserInput {
                    image: wire::InputImage::Url { url },
                    ..
                }) = part
                else {
                    continue;
                };
                if let Some(Err(words)) = look_up(blobs, url).await {
                    *part = wire::UserInput::Text(wire::TextUserInput {
                        text: words,
                        text_elements: Vec::new(),
                    });
                }
            }
        }
        wire::ThreadItem::DynamicToolCall(it) => {
            for part in it.content_items.iter_mut().flatten() {
                let Content::InputImage(image) = part else {
                    continue;
                };
                if let Some(Err(text)) = look_up(blobs, &mut image.image_url).await {
                    let words = wire::InputTextDynamicToolCallOutputContentItem { text };
                    *part = Content::InputText(words);
                }
            }
        }
        _ => {}
    }
}

/// The same in what is told.
pub(crate) async fn show_told(blobs: &dyn Blobs, told: &mut wire::Notification) {
    match told {
        wire::Notification::ItemStarted(it) => show(blobs, &mut it.item).await,
        wire::Notification::ItemCompleted(it) => show(blobs, &mut it.item).await,
        _ => {}
    }
}

/// Puts an image in the place of its name, if that is one; else says why not.
async fn look_up(blobs: &dyn Blobs, url: &mut String) -> Option<Result<(), String>> {
    let blob = Blob::of_url(url)?;
    Some(data_url(blobs, blob).await.map(|data| *url = data))
}

/// A blob as a `data:` URL; else words in its place.
async fn data_url(blobs: &dyn Blobs, blob: Blob) -> Result<String, String> {
    let media = blob.media.clone();
    let bytes = blobs.get(blob).await.map_err(|error| {
        tracing::warn!(%error, "an image cannot be read");
        format!("[an image that cannot be read: {error}]")
    })?;
    let mut url = format!("data:{media};base64,");
    STANDARD.encode_string(bytes, &mut url);
    Ok(url)
}

/// How many bytes of images one call of a model shows.
pub(crate) const SHOWN_BYTES_MAX: usize = 32 << 20;

/// Puts images in the place of their names, for a model: the newest, as many as fit. Vendors take only so
/// much, and the rest would be read and sent with every call.
pub(crate) async fn look_at(blobs: &dyn Blobs, entries: &mut [SharedEntry], bytes_max: usize) {
    let mut room = bytes_max;
    // The others stay as they are, and are not written anew.
    for entry in entries.iter_mut().rev().filter(|it| names_images(it)) {
        let mut shown = ContextEntry::clone(entry);
        match &mut shown {
            ContextEntry::User(input) => {
                for part in input.iter_mut().rev() {
                    let Input::Image { image, .. } = part else {
                        continue;
                    };
                    if let Err(words) = look_at_one(blobs, image, &mut room).await {
                        *part = Input::text(words);
                    }
                }
            }
            ContextEntry::Output { output, .. } => {
                let mut seen = Vec::new();
                for mut image in std::mem::take(&mut output.images) {
                    match look_at_one(blobs, &mut image, &mut room).await {
                        Ok(()) => seen.push(image),
                        Err(words) => output.text.push_str(&words),
                    }
                }
                output.images = seen;
            }
            ContextEntry::Summary(_)
            | ContextEntry::Developer(_)
            | ContextEntry::Assistant { .. }
            | ContextEntry::Reasoning(_)
            | ContextEntry::Call(_)
            | ContextEntry::Note(_) => {}
        }
        *entry = shown.into();
    }
}

fn names_images(entry: &ContextEntry) -> bool {
    match entry {
        ContextEntry::User(input) => of_input(input).next().is_some(),
        ContextEntry::Output { output, .. } => of_output(output).next().is_some(),
        _ => false,
    }
}

async fn look_at_one(blobs: &dyn Blobs, image: &mut Image, room: &mut usize) -> Result<(), String> {
    if let Image::Blob(blob) = image {
        let bytes = usize::try_from(blob.bytes).unwrap_or(usize::MAX);
        let Some(left) = room.checked_sub(bytes) else {
            // Older ones are not shown either, so that which are does not change from call to call.
            *room = 0;
            return Err("[An image that was shown here is left out.]".to_owned());
        };
        *room = left;
        let url = data_url(blobs, blob.clone()).await?;
        *image = Image::Url { url };
    }
    Ok(())
}

/// The images that a record names.
pub(crate) fn named(record: &Record) -> Vec<&Blob> {
    let RecordBody::Event(event) = &record.body else {
        return Vec::new();
    };
    match &**event {
        Event::InputAccepted(it) => of_item(&it.item),
        Event::ItemCompleted(it) => of_item(&it.item),
        Event::RequestResolved(it) => match &it.resolution {
            Resolution::Answered { answer, .. } => match &**answer {
                RequestAnswer::Tool { output, .. } => of_output(output).collect(),
                _ => Vec::new(),
            },
            Resolution::Expired {} | Resolution::Withdrawn {} => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn of_item(item: &Item) -> Vec<&Blob> {
    let mut blobs: Vec<&Blob> = item.output.iter().flat_map(of_output).collect();
    if let ItemBody::UserMessage(message) = &item.body {
        blobs.extend(of_input(&message.input));
    }
    blobs
}

fn of_input(input: &[Input]) -> impl Iterator<Item = &Blob> {
    input.iter().filter_map(|part| match part {
        Input::Image { image, .. } => of_image(image),
        _ => None,
    })
}

fn of_output(output: &Output) -> impl Iterator<Item = &Blob> {
    output.images.iter().filter_map(of_image)
}

fn of_image(image: &Image) -> Option<&Blob> {
    match image {
        Image::Blob(blob) => Some(blob),
        Image::Url { .. } | Image::Path { .. } | Image::File { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_that_models_read_are_kept() {
        let url = |bytes: &[u8]| format!("data:image/x;base64,{}", STANDARD.encode(bytes));
        let png = |width: u32, height: u32| {
            let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
            bytes.extend(width.to_be_bytes());
            bytes.extend(height.to_be_bytes());
            bytes
        };
        let large_size =
            "60000×60000 pixels; a side may have 16384 and the whole 50000000, so make it smaller first".to_owned();
        let large = format!("data:;base64,{}", "A".repeat(IMAGES_BYTES_MAX / 3 * 4 + 8));
        for (url, wanted) in [
            (url(&png(3, 2)), Ok("image/png")),
            (
                url(b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x02\0\x03"),
                Ok("image/jpeg"),
            ),
            (url(b"GIF89a\x03\0\x02\0"), Ok("image/gif")),
            (
                url(b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x02\0\0\x01\0\0"),
                Ok("image/webp"),
            ),
            ("DATA:;BASE64,R0lGODlhAwACAA==".to_owned(), Ok("image/gif")),
            (url(&png(60_000, 60_000)), Err(ImageError::Size(large_size))),
            // A file without a size is an image by its first bytes only.
            (url(b"GIF89a"), Err(ImageError::NotAnImage)),
            (url(b"\x89PNG\r\n\x1a\n"), Err(ImageError::NotAnImage)),
            (url(b"<svg/>"), Err(ImageError::NotAnImage)),
            (url(b""), Err(ImageError::NotAnImage)),
            (large, Err(ImageError::TooLarge)),
            ("data:image/gif,GIF89a".to_owned(), Err(ImageError::NotData)),
            (
                "data:image/gif;base64,?".to_owned(),
                Err(ImageError::NotData),
            ),
            ("https://a/b.png".to_owned(), Err(ImageError::NotData)),
            ("dätá,".to_owned(), Err(ImageError::NotData)),
        ] {
            let found = NewImage::of_url(&url).map(|it| it.media);
            assert_eq!(found, wanted, "{}", &url[..url.len().min(60)]);
        }
    }
}
