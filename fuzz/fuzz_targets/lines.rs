//! Line framing of chunks of any size, compared with splitting the whole input at newlines.
//!
//! The first byte of an input is the cap, the second seeds the sizes of the chunks, the rest is the
//! stream.
#![cfg_attr(fuzzing, no_main)]

use raddle_rpc::{Frame, LineCodec};

fuzz::target!(|input: &[u8]| {
    let [cap, seed, stream @ ..] = input else {
        return;
    };
    let cap = usize::from(*cap);
    assert_eq!(in_pieces(stream, cap, *seed), at_once(stream, cap));
});

fn in_pieces(mut stream: &[u8], cap: usize, seed: u8) -> Vec<Frame> {
    let mut lines = LineCodec::new(cap);
    let mut frames = Vec::new();
    let mut size = u32::from(seed);
    while !stream.is_empty() {
        size = size.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Mostly small chunks, sometimes empty ones.
        let length = ((size >> 24) as usize % 40).min(stream.len());
        let (piece, rest) = stream.split_at(length);
        lines.buffer().extend_from_slice(piece);
        frames.extend(std::iter::from_fn(|| lines.next_line()));
        assert!(
            lines.buffer().len() <= cap,
            "more is kept than a line may have"
        );
        stream = rest;
    }
    frames
}

fn at_once(stream: &[u8], cap: usize) -> Vec<Frame> {
    let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    // The text after the last newline is not a line yet.
    lines.pop();
    let frame = |line: &[u8]| {
        if line.len() > cap {
            return Some(Frame::TooLong);
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        (!line.is_empty()).then(|| Frame::Message(line.to_vec().into()))
    };
    lines.into_iter().filter_map(frame).collect()
}
