//! The shape of a JSON text: which arrays and objects are in it and where, without anything else. However
//! long its strings are, it costs little.

use std::io;

/// An array or an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) is_object: bool,
    /// The arrays and objects in it, in order of their places. Of one name that is there twice, the last
    /// counts.
    inside: Vec<(PathSegment, Shape)>,
}

/// Where something is in an array or an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathSegment {
    Index(usize),
    Key(Box<str>),
}

impl Shape {
    /// The shape of a text that is known to be JSON; none if it is neither an array nor an object.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut shaper = ShapeBuilder::default();
        shaper.take(text.as_bytes());
        shaper.done()
    }

    /// What is in it, and where.
    pub(super) fn inside(&self) -> impl Iterator<Item = (&PathSegment, &Self)> {
        self.inside.iter().map(|(place, shape)| (place, shape))
    }

    /// The array or object at a place.
    pub(super) fn at(&self, place: &PathSegment) -> Option<&Self> {
        let end = self.inside.partition_point(|(it, _)| it <= place);
        let (found, shape) = self.inside[..end].last()?;
        (found == place).then_some(shape)
    }
}

/// Makes a shape of a text that comes in pieces.
#[derive(Default)]
pub(super) struct ShapeBuilder {
    done: Option<Shape>,
    open: Vec<OpenShape>,
    string: StringState,
    /// The name that is being read, with its escapes.
    key: Vec<u8>,
}

/// Where in a string the last piece ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StringState {
    #[default]
    Outside,
    Inside,
    /// Behind a backslash.
    Escaped,
}

/// An array or object whose end has not come.
struct OpenShape {
    shape: Shape,
    /// Where the next thing in it will be.
    next: PathSegment,
    /// Whether a name comes next.
    awaits_key: bool,
}

impl ShapeBuilder {
    /// The shape, when all has come.
    pub(super) fn done(self) -> Option<Shape> {
        self.done
    }

    fn take(&mut self, mut text: &[u8]) {
        while let Some(byte) = text.first() {
            match self.string {
                StringState::Outside => {
                    self.mark(*byte);
                    text = &text[1..];
                }
                StringState::Inside => {
                    let end = super::marks::position_of_any(*b"\"\\", text);
                    let end = end.unwrap_or(text.len());
                    self.keep(&text[..end]);
                    text = &text[end..];
                    match text.first() {
                        Some(b'"') => self.end_string(),
                        Some(_) => {
                            self.string = StringState::Escaped;
                            self.keep(&text[..1]);
                        }
                        None => return,
                    }
                    text = &text[1..];
                }
                StringState::Escaped => {
                    self.string = StringState::Inside;
                    self.keep(&text[..1]);
                    text = &text[1..];
                }
            }
        }
    }

    /// A byte outside of strings.
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
            shape.inside.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        match self.open.last_mut() {
            Some(outer) => outer.shape.inside.push((outer.next.clone(), shape)),
            None => self.done = Some(shape),
        }
    }

    /// Keeps a piece of a string, if the string is a name.
    fn keep(&mut self, piece: &[u8]) {
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

/// A name as it is meant: one may be written in many ways.
fn unescaped(key: &[u8]) -> Box<str> {
    let plain = String::from_utf8_lossy(key);
    let meant = if plain.contains('\\') {
        serde_json::from_str(&format!("\"{plain}\"")).ok()
    } else {
        None
    };
    meant.unwrap_or_else(|| plain.into())
}

impl io::Write for ShapeBuilder {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.take(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shape in words: every array and object with its place.
    fn told(shape: &Shape) -> String {
        let inside: Vec<String> = shape
            .inside()
            .map(|(place, shape)| match place {
                PathSegment::Index(index) => format!("{index}{}", told(shape)),
                PathSegment::Key(key) => format!("{key}{}", told(shape)),
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
            assert_eq!(shape.as_ref().map(told).as_deref(), Some(expected));
            // In whatever pieces it comes.
            let mut shaper = ShapeBuilder::default();
            for byte in text.bytes() {
                shaper.take(&[byte]);
            }
            assert_eq!(shaper.done(), shape, "{text}");
        }
        assert_eq!(Shape::of("7"), None);
        assert_eq!(Shape::of(r#""[]""#), None);
    }

    #[test]
    fn the_last_of_one_name_counts() {
        let shape = Shape::of(r#"{"a": [], "b": [], "a": {}}"#).expect("a shape");
        let at = |key: &str| {
            shape
                .at(&PathSegment::Key(key.into()))
                .map(|it| it.is_object)
        };
        assert_eq!((at("a"), at("b"), at("c")), (Some(true), Some(false), None));
    }
}
