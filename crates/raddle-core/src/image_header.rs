//! Header of an image: its format and size.
//!
//! Nothing is decoded here. The header gives the decoded size, so a small file that would decode to
//! more memory than the machine has is rejected first.

/// Limit: pixels of an image; beyond it, the call or the request is rejected with the reason.
const PIXELS_MAX: u64 = 50_000_000;
const SIDE_MAX: u32 = 16_384;

/// Header of an image in a format that models read: PNG, JPEG, GIF or WebP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageHeader {
    /// Media type, such as `image/png`.
    pub media: &'static str,
    /// Width in pixels, as declared.
    pub width: u32,
    /// Height in pixels, as declared.
    pub height: u32,
}

impl ImageHeader {
    /// Reads the header from the bytes of a file; `None` if they are not an image of a supported
    /// format.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (media, (width, height)) = measure(bytes)?;
        Some(Self {
            media,
            width,
            height,
        })
    }

    /// Returns the reason not to show the image to a model, if its size forbids it.
    pub fn objection(&self) -> Option<String> {
        let Self { width, height, .. } = *self;
        let pixels = u64::from(width) * u64::from(height);
        let is_good =
            width > 0 && height > 0 && pixels <= PIXELS_MAX && width.max(height) <= SIDE_MAX;
        (!is_good).then(|| {
            format!(
                "{width}×{height} pixels; a side may have {SIDE_MAX} and the whole {PIXELS_MAX}, so make it smaller first"
            )
        })
    }
}

/// Returns the media type of an image, and its width and height.
fn measure(bytes: &[u8]) -> Option<(&'static str, (u32, u32))> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some(("image/png", png(bytes)?));
    }
    if bytes.starts_with(b"\xff\xd8\xff") {
        return Some(("image/jpeg", jpeg(bytes)?));
    }
    if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        let size = (u16_little(bytes, 6)?, u16_little(bytes, 8)?);
        return Some(("image/gif", size));
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP" {
        return Some(("image/webp", webp(bytes)?));
    }
    None
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes.get(12..16)? != b"IHDR" {
        return None;
    }
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    Some((number(16)?, number(20)?))
}

/// Reads the size from the first frame header, which follows any number of segments with lengths.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        match marker {
            0xff => at += 1,
            // These have no length.
            0x01 | 0xd0..=0xd8 => at += 2,
            0xc0..=0xcf if ![0xc4, 0xc8, 0xcc].contains(&marker) => {
                return Some((number(at + 7)?.into(), number(at + 5)?.into()));
            }
            // The image data begins or ends without a size.
            0xd9 | 0xda => return None,
            _ => at += 2 + usize::from(number(at + 2)?),
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    let u24_little = |at: usize| {
        let it = bytes.get(at..at + 3)?;
        Some(u32::from_le_bytes([it[0], it[1], it[2], 0]))
    };
    match bytes.get(12..16)? {
        b"VP8X" => Some((u24_little(24)? + 1, u24_little(27)? + 1)),
        b"VP8 " if bytes.get(23..26)? == b"\x9d\x01\x2a" => Some((
            u16_little(bytes, 26)? & 0x3fff,
            u16_little(bytes, 28)? & 0x3fff,
        )),
        b"VP8L" if *bytes.get(20)? == 0x2f => {
            let bits = u32::from_le_bytes(bytes.get(21..25)?.try_into().ok()?);
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        _ => None,
    }
}

fn u16_little(bytes: &[u8], at: usize) -> Option<u32> {
    let pair = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_le_bytes(pair).into())
}
