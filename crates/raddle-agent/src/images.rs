//! Images: stored as blobs, and loaded again for the model and for clients.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use raddle_core::ports::AppendError;
use raddle_core::{
    Blob, ContextEntry, Event, Image, ImageHeader, Input, Item, ItemBody, Output, Record,
    RecordBody, RequestAnswer, Resolution, SharedEntry,
};
use raddle_protocol as wire;

use crate::thread_blobs::ThreadBlobs;

/// Limit: images of one message, or of one result of a client's tool; beyond it, the server rejects
/// the message with -32602; the tool call fails, and the model is notified.
///
/// A notification with the images must fit into a client's queue.
pub const IMAGES_BYTES_MAX: usize = 10 << 20;

/// Reason why an image is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The URL is not a `data:` URL.
    #[error("the URL of an image must be a `data:` URL in base64")]
    NotData,
    /// The format is not supported.
    #[error("unsupported image format: send PNG, JPEG, GIF or WebP")]
    NotAnImage,
    /// Its dimensions exceed the limit.
    #[error("it is {0}")]
    Size(String),
    /// It is too large, alone or with the other images.
    #[error("images may have {IMAGES_BYTES_MAX} bytes together; send fewer, or smaller ones")]
    TooLarge,
}

/// An image that is not stored yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewImage {
    bytes: Vec<u8>,
    media: &'static str,
}

impl NewImage {
    /// Detects the format of the bytes.
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

    /// Decodes a `data:` URL. Its media type is ignored.
    pub fn of_url(url: &str) -> Result<Self, ImageError> {
        let scheme = url.get(..5).unwrap_or_default();
        let data = url
            .split_once(',')
            .filter(|_| scheme.eq_ignore_ascii_case("data:"));
        let (header, data) = data.ok_or(ImageError::NotData)?;
        if !header.to_ascii_lowercase().ends_with(";base64") {
            return Err(ImageError::NotData);
        }
        if data.len() / 4 > IMAGES_BYTES_MAX / 3 {
            return Err(ImageError::TooLarge);
        }
        Self::of(STANDARD.decode(data).map_err(|_| ImageError::NotData)?)
    }

    /// Stores the image, so that a record may name it.
    pub(crate) async fn keep(self, blobs: &ThreadBlobs) -> Result<Image, AppendError> {
        let blob = blobs.put(self.bytes, self.media.to_owned()).await;
        blob.map(Image::Blob)
    }

    /// Returns the size of the image in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Replaces names of images by the images, or by a text if an image cannot be read.
pub(crate) async fn show(blobs: &ThreadBlobs, item: &mut wire::ThreadItem) {
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

/// Does the same in a notification.
pub(crate) async fn show_in_notification(
    blobs: &ThreadBlobs,
    notification: &mut wire::Notification,
) {
    match notification {
        wire::Notification::ItemStarted(it) => show(blobs, &mut it.item).await,
        wire::Notification::ItemCompleted(it) => show(blobs, &mut it.item).await,
        _ => {}
    }
}

/// Replaces a blob URL by a `data:` URL. Returns `None` for any other URL, and a text if the image
/// cannot be read.
async fn look_up(blobs: &ThreadBlobs, url: &mut String) -> Option<Result<(), String>> {
    let blob = Blob::of_url(url)?;
    Some(data_url(blobs, blob).await.map(|data| *url = data))
}

/// Encodes a blob as a `data:` URL, or returns a replacement text.
async fn data_url(blobs: &ThreadBlobs, blob: Blob) -> Result<String, String> {
    let media = blob.media.clone();
    let bytes = blobs.get(blob).await.map_err(|error| {
        tracing::warn!(%error, "an image cannot be read");
        format!("[an image that cannot be read: {error}]")
    })?;
    let mut url = format!("data:{media};base64,");
    STANDARD.encode_string(bytes, &mut url);
    Ok(url)
}

/// Limit: images that one model call includes, the newest first; beyond it, older images are left
/// out, and the model is notified.
pub(crate) const SHOWN_BYTES_MAX: usize = 32 << 20;

/// Replaces names of images by the images for a model: the newest, as many as fit. Vendors limit
/// the size, and the rest would be read and sent with every call.
pub(crate) async fn look_at(blobs: &ThreadBlobs, entries: &mut [SharedEntry], bytes_max: usize) {
    let mut budget = bytes_max;
    // Entries without images stay unchanged and are not copied.
    for entry in entries.iter_mut().rev().filter(|it| names_images(it)) {
        let mut inlined = ContextEntry::clone(entry);
        match &mut inlined {
            ContextEntry::User(input) => {
                for part in input.iter_mut().rev() {
                    let Input::Image { image, .. } = part else {
                        continue;
                    };
                    if let Err(words) = look_at_one(blobs, image, &mut budget).await {
                        *part = Input::text(words);
                    }
                }
            }
            ContextEntry::Output { output, .. } => {
                let mut images = Vec::new();
                for mut image in std::mem::take(&mut output.images) {
                    match look_at_one(blobs, &mut image, &mut budget).await {
                        Ok(()) => images.push(image),
                        Err(words) => output.text.push_str(&words),
                    }
                }
                output.images = images;
            }
            ContextEntry::Summary(_)
            | ContextEntry::Developer(_)
            | ContextEntry::Assistant { .. }
            | ContextEntry::Reasoning(_)
            | ContextEntry::Call(_)
            | ContextEntry::Note(_) => {}
        }
        *entry = inlined.into();
    }
}

fn names_images(entry: &ContextEntry) -> bool {
    match entry {
        ContextEntry::User(input) => of_input(input).next().is_some(),
        ContextEntry::Output { output, .. } => of_output(output).next().is_some(),
        _ => false,
    }
}

async fn look_at_one(
    blobs: &ThreadBlobs,
    image: &mut Image,
    budget: &mut usize,
) -> Result<(), String> {
    if let Image::Blob(blob) = image {
        let bytes = usize::try_from(blob.bytes).unwrap_or(usize::MAX);
        let Some(remaining) = budget.checked_sub(bytes) else {
            // Older images are dropped as well, so that the selection stays stable between calls.
            *budget = 0;
            return Err("[An image that was shown here is left out.]".to_owned());
        };
        *budget = remaining;
        let url = data_url(blobs, blob.clone()).await?;
        *image = Image::Url { url };
    }
    Ok(())
}

/// Returns the images that a record names.
pub(crate) fn named_blobs(record: &Record) -> Vec<&Blob> {
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
        Input::Image { image, .. } => image.blob(),
        _ => None,
    })
}

fn of_output(output: &Output) -> impl Iterator<Item = &Blob> {
    output.images.iter().filter_map(Image::blob)
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
        for (url, expected) in [
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
            // Without dimensions the first bytes alone do not make an image.
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
            let actual = NewImage::of_url(&url).map(|it| it.media);
            assert_eq!(actual, expected, "{}", &url[..url.len().min(60)]);
        }
    }
}
