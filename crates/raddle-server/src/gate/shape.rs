//! The shape of a JSON text: its arrays and objects and their paths, without anything else. It is
//! small however long the strings are.

use std::io;

/// An array or an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) is_object: bool,
    /// The arrays and objects in it, ordered by path segment. Of a duplicate key, the last counts.
    inside: Vec<(PathSegment, Shape)>,
}

/// A position in an array or an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathSegment {
    Index(usize),
    Key(Box<str>),
}

impl Shape {
    /// Returns the shape of a text that is valid JSON; none if it is neither an array nor an
    /// object.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut builder = ShapeBuilder::default();
        builder.feed(text.as_bytes());
        builder.done()
    }

    /// Returns the arrays and objects in it, with their path segments.
    pub(super) fn inside(&self) -> impl Iterator<Item = (&PathSegment, &Self)> {
        self.inside.iter().map(|(segment, shape)| (segment, shape))
    }

    /// Returns the array or object at a path segment.
    pub(super) fn at(&self, segment: &PathSegment) -> Option<&Self> {
        let end = self.inside.partition_point(|(it, _)| it <= segment);
        let (key, shape) = self.inside[..end].last()?;
        (key == segment).then_some(shape)
    }
}

/// Builds the shape of a text that arrives in pieces.
#[derive(Default)]
pub(super) struct ShapeBuilder {
    done: Option<Shape>,
    open: Vec<OpenShape>,
    string: StringState,
    /// The key being read, with its escapes.
    key: Vec<u8>,
}

/// State of the scanner at the end of the last piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StringState {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

/// An array or object that is not closed yet.
struct OpenShape {
    shape: Shape,
    /// Path segment of the next value in it.
    next: PathSegment,
    /// Whether a key comes next.
    awaits_key: bool,
}

impl ShapeBuilder {
    /// Returns the shape, if the text was complete.
    pub(super) fn done(self) -> Option<Shape> {
        self.done
    }

    fn feed(&mut self, mut text: &[u8]) {
        while let Some(byte) = text.first() {
            match self.string {
                StringState::Outside => {
                    self.mark(*byte);
                    text = &text[1..];
                }
                StringState::Inside => {
                    let end = raddle_rpc::marks::position_of_any(*b"\"\\", text);
                    let end = end.unwrap_or(text.len());
                    self.append_to_key(&text[..end]);
                    text = &text[end..];
                    match text.first() {
                        Some(b'"') => self.end_string(),
                        Some(_) => {
                            self.string = StringState::Escaped;
                            self.append_to_key(&text[..1]);
                        }
                        None => return,
                    }
                    text = &text[1..];
                }
                StringState::Escaped => {
                    self.string = StringState::Inside;
                    self.append_to_key(&text[..1]);
                    text = &text[1..];
                }
            }
        }
    }

    /// Handles a byte outside of strings.
    fn mark(&mut self, byte: u8) {
        match byte {
            b'"' => self.string = StringState::Inside,
            b'{' => self.begin(true, PathSegment::Key("".into())),
            b'[' => self.begin(false, PathSegment::Index(0)),
            b'}' | b']' => self.end(),
            b',' => {
                if let Some(OpenShape {
                    next, awaits_key, ..
                }) = self.open.last_mut()
                {
                    match next {
                        PathSegment::Index(index) => *index += 1,
                        PathSegment::Key(_) => *awaits_key = true,
                    }
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, is_object: bool, next: PathSegment) {
        let inside = Vec::new();
        self.open.push(OpenShape {
            shape: Shape { is_object, inside },
            next,
            awaits_key: is_object,
        });
    }

    fn end(&mut self) {
        let Some(OpenShape { mut shape, .. }) = self.open.pop() else {
            return;
        };
        if shape.is_object {
            shape.inside.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        match self.open.last_mut() {
            Some(outer) => outer.shape.inside.push((outer.next.clone(), shape)),
            None => self.done = Some(shape),
        }
    }

    /// Appends a piece of a string to the key, if the string is a key.
    fn append_to_key(&mut self, piece: &[u8]) {
        if self.open.last().is_some_and(|open| open.awaits_key) {
            self.key.extend_from_slice(piece);
        }
    }

    fn end_string(&mut self) {
        self.string = StringState::Outside;
        let Some(open) = self.open.last_mut().filter(|open| open.awaits_key) else {
            return;
        };
        open.awaits_key = false;
        open.next = PathSegment::Key(unescaped(&self.key));
        self.key.clear();
    }
}

/// Unescapes a key, so that keys that are written differently compare equal.
fn unescaped(key: &[u8]) -> Box<str> {
    let plain = String::from_utf8_lossy(key);
    let unescaped_key = if plain.contains('\\') {
        serde_json::from_str(&format!("\"{plain}\"")).ok()
    } else {
        None
    };
    unescaped_key.unwrap_or_else(|| plain.into())
}

impl io::Write for ShapeBuilder {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.feed(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders the shape as text: every array and object with its path segment.
    fn rendered(shape: &Shape) -> String {
        let inside: Vec<String> = shape
            .inside()
            .map(|(segment, shape)| match segment {
                PathSegment::Index(index) => format!("{index}{}", rendered(shape)),
                PathSegment::Key(key) => format!("{key}{}", rendered(shape)),
            })
            .collect();
        let inside = inside.join(" ");
        if shape.is_object {
            format!("{{{inside}}}")
        } else {
            format!("[{inside}]")
        }
    }

    #[test]
    fn shapes() {
        for (text, expected) in [
            (r#"{"a": [1, 2], "b": {}}"#, "{a[] b{}}"),
            (r#"{"b": [1, {"c": "[{"}, 2, []], "a": 1}"#, "{b[1{} 3[]]}"),
            (r#"{"z": [], "a": {}}"#, "{a{} z[]}"),
            (r#"{"\u0061\"[": [], "x": "\\\"", "y": []}"#, "{a\"[[] y[]}"),
            (r#"["\\", [], "\"", "[", []]"#, "[1[] 4[]]"),
            (r#"{"": {"": []}}"#, "{{[]}}"),
        ] {
            let shape = Shape::of(text);
            assert_eq!(shape.as_ref().map(rendered).as_deref(), Some(expected));
            // Split at every byte.
            let mut builder = ShapeBuilder::default();
            for byte in text.bytes() {
                builder.feed(&[byte]);
            }
            assert_eq!(builder.done(), shape, "{text}");
        }
        assert_eq!(Shape::of("7"), None);
        assert_eq!(Shape::of(r#""[]""#), None);
    }

    #[test]
    fn the_last_of_duplicate_keys_counts() {
        let shape = Shape::of(r#"{"a": [], "b": [], "a": {}}"#).expect("a shape");
        let at = |key: &str| {
            shape
                .at(&PathSegment::Key(key.into()))
                .map(|it| it.is_object)
        };
        assert_eq!((at("a"), at("b"), at("c")), (Some(true), Some(false), None));
    }
}
