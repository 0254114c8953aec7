//! Contents in a `GIT binary patch`.
//!
//! Git wants them deflated and in base 85. They are wrapped in blocks that are stored as they are,
//! which every reader accepts, and which needs no compressor.

/// Digits of base 85, as git has them.
const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Number of bytes in a full line.
const LINE_BYTES: usize = 52;

/// Appends a content, and the empty line that ends it.
pub(super) fn literal(text: &mut Vec<u8>, content: &[u8]) {
    text.extend(format!("literal {}\n", content.len()).bytes());
    for line in stored(content).chunks(LINE_BYTES) {
        let length = line.len() as u8;
        text.push(match length {
            1..=26 => b'A' + length - 1,
            _ => b'a' + length - 27,
        });
        for group in line.chunks(4) {
            let mut bytes = [0; 4];
            bytes[..group.len()].copy_from_slice(group);
            let mut rest = u32::from_be_bytes(bytes) as usize;
            let mut digits = [0; 5];
            for digit in digits.iter_mut().rev() {
                *digit = DIGITS[rest % 85];
                rest /= 85;
            }
            text.extend(digits);
        }
        text.push(b'\n');
    }
    text.push(b'\n');
}

/// Returns a zlib stream of stored blocks.
fn stored(content: &[u8]) -> Vec<u8> {
    const BLOCK_BYTES: usize = 0xffff;
    let mut stream = vec![0x78, 0x01];
    let mut blocks = content.chunks(BLOCK_BYTES).peekable();
    if content.is_empty() {
        stream.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend_from_slice(block);
    }
    stream.extend(adler32(content).to_be_bytes());
    stream
}

fn adler32(content: &[u8]) -> u32 {
    let (mut a, mut b) = (1u32, 0u32);
    // Up to 5,552 bytes cannot overflow the sums.
    for chunk in content.chunks(5_552) {
        for byte in chunk {
            a += u32::from(*byte);
            b += a;
        }
        a %= 65_521;
        b %= 65_521;
    }
    b << 16 | a
}
