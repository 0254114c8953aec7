//! A reference implementation of the rules of `docs/frames.md`, written from that page and not from
//! the server's code. It is slow and plain. The fuzz target `envelope` uses it too.

/// The class of a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// Not JSON, or not UTF-8.
    NotJson,
    /// A batch or a scalar.
    NotAnObject,
    /// An object that is no request, notification or response.
    NotAMessage,
    /// A response without a usable id.
    AnswerToNothing,
    /// Rejected with -32600, under the id if it has a usable one.
    Refused { id: Option<Id> },
    Request {
        id: Id,
        method: String,
        params: Option<&'a str>,
    },
    Notification {
        method: String,
        params: Option<&'a str>,
    },
    /// A response under this id.
    Answer { id: Id },
}

/// A usable id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Id {
    Integer(i64),
    Text(String),
}

const DEPTH_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 1024;

/// Classifies a frame.
pub fn judge(frame: &[u8]) -> Verdict<'_> {
    let Ok(text) = std::str::from_utf8(frame) else {
        return Verdict::NotJson;
    };
    let (members, depth) = match read(text) {
        None => return Verdict::NotJson,
        Some(Top::Other) => return Verdict::NotAnObject,
        Some(Top::Object { members, depth }) => (members, depth),
    };
    let all = |name: &str| -> Vec<&str> {
        let named = members.iter().filter(|(it, _)| it == name);
        named.map(|(_, value)| *value).collect()
    };
    let [ids, methods, params, results, errors] =
        ["id", "method", "params", "result", "error"].map(all);
    let id = match ids[..] {
        [one] => read_id(one),
        _ => None,
    };
    let repeated = [&ids, &methods, &params, &results, &errors]
        .iter()
        .any(|values| values.len() > 1);
    let answers = !results.is_empty() || !errors.is_empty();

    let Some(method) = methods.first() else {
        return match id {
            _ if !answers => Verdict::NotAMessage,
            Some(id) if !repeated => Verdict::Answer { id },
            _ => Verdict::AnswerToNothing,
        };
    };
    let bad_id = id.is_none() && !ids.is_empty();
    let Some(method) = decode(method).filter(|name| name.len() <= NAME_BYTES_MAX) else {
        return Verdict::Refused { id };
    };
    if bad_id || repeated || answers || depth > DEPTH_MAX {
        return Verdict::Refused { id };
    }
    let params = params.first().copied();
    match id {
        Some(id) => Verdict::Request { id, method, params },
        None => Verdict::Notification { method, params },
    }
}

/// The members of an object, names decoded and values verbatim; `None` for anything else.
pub fn members(json: &str) -> Option<Vec<(String, &str)>> {
    match read(json)? {
        Top::Object { members, .. } => Some(members),
        Top::Other => None,
    }
}

/// The text of a JSON string; `None` for other values and for unpaired surrogates.
pub fn decode(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

fn read_id(json: &str) -> Option<Id> {
    if let Some(text) = decode(json) {
        return (text.len() <= NAME_BYTES_MAX).then_some(Id::Text(text));
    }
    let digits = json.strip_prefix('-').unwrap_or(json);
    let integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = json.parse::<i128>().ok().filter(|_| integer)?;
    i64::try_from(number).ok().map(Id::Integer)
}

enum Top<'a> {
    Object {
        members: Vec<(String, &'a str)>,
        depth: usize,
    },
    Other,
}

/// Parses a whole text as one JSON value; `None` if it is not one. A name with an unpaired
/// surrogate makes it invalid, because there is no such name.
fn read(text: &str) -> Option<Top<'_>> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.space();
    if scanner.peek()? != b'{' {
        scanner.value()?;
        scanner.end()?;
        return Some(Top::Other);
    }
    scanner.at += 1;
    let (mut members, mut depth) = (Vec::new(), 1);
    scanner.space();
    if scanner.peek()? == b'}' {
        scanner.at += 1;
    } else {
        loop {
            let name = decode(scanner.name()?)?;
            scanner.space();
            let start = scanner.at;
            depth = depth.max(1 + scanner.value()?);
            members.push((name, &text[start..scanner.at]));
            scanner.space();
            match scanner.take()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
    }
    scanner.end()?;
    Some(Top::Object { members, depth })
}

/// Scans JSON by its grammar, without recursion: the nesting may be as deep as the text is long.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Scans one value and returns its nesting depth; a scalar has none.
    fn value(&mut self) -> Option<usize> {
        let mut open: Vec<u8> = Vec::new();
        let mut deepest = 0;
        loop {
            self.space();
            match self.peek()? {
                bracket @ (b'{' | b'[') => {
                    self.at += 1;
                    let close = if bracket == b'{' { b'}' } else { b']' };
                    open.push(close);
                    deepest = deepest.max(open.len());
                    self.space();
                    if self.peek()? != close {
                        if close == b'}' {
                            self.name()?;
                        }
                        continue;
                    }
                }
                b'"' => {
                    self.string()?;
                }
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => self.number()?,
            }
            // A value has ended: close what ends here, or go on to the next one.
            loop {
                let Some(&close) = open.last() else {
                    return Some(deepest);
                };
                self.space();
                match self.take()? {
                    b',' if close == b'}' => {
                        self.name()?;
                        break;
                    }
                    b',' => break,
                    it if it == close => {
                        open.pop();
                    }
                    _ => return None,
                }
            }
        }
    }

    /// Scans a member's name and its colon.
    fn name(&mut self) -> Option<&'a str> {
        self.space();
        let name = self.string()?;
        self.space();
        (self.take()? == b':').then_some(name)
    }

    fn string(&mut self) -> Option<&'a str> {
        let start = self.at;
        if self.take()? != b'"' {
            return None;
        }
        loop {
            match self.take()? {
                b'"' => return Some(&self.text[start..self.at]),
                b'\\' => match self.take()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => {
                        for _ in 0..4 {
                            self.take().filter(u8::is_ascii_hexdigit)?;
                        }
                    }
                    _ => return None,
                },
                0..0x20 => return None,
                _ => {}
            }
        }
    }

    fn number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        match self.take()? {
            b'0' => {}
            b'1'..=b'9' => {
                self.digits();
            }
            _ => return None,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// Scans one digit or more.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.text.as_bytes()[self.at..]
            .starts_with(word.as_bytes())
            .then(|| self.at += word.len())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn end(&mut self) -> Option<()> {
        self.space();
        (self.at == self.text.len()).then_some(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }
}
