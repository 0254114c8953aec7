//! The generator: frames of every malformed kind, with valid ones between them.

use ::support::Rng;

/// The random choices of the generators.
pub struct FrameRng(Rng);

impl FrameRng {
    pub fn new(seed: u64) -> Self {
        Self(Rng::from_state(seed))
    }

    /// A number below this bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.index(bound)
    }

    pub fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    pub fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.0.bits() as u8).collect()
    }
}

/// Names and values of an object's members, as text.
type FrameMembers = Vec<(String, String)>;

pub struct Frames {
    rng: FrameRng,
    number: u64,
    cap: usize,
}

impl Frames {
    /// Creates a generator whose oversized frames are over this cap.
    pub fn new(seed: u64, cap: usize) -> Self {
        Self {
            rng: FrameRng::new(seed),
            number: 0,
            cap,
        }
    }

    pub fn next(&mut self) -> Vec<u8> {
        match self.rng.below(28) {
            0 | 1 => self.good().into(),
            2..=5 => self.broken(),
            6 => self.not_an_object().into(),
            7 => self.no_message().into(),
            8..=10 => self.bad_id().into(),
            11..=13 => self.duplicate_members().into(),
            14 => self.bad_method().into(),
            15 => self.answer().into(),
            16..=18 => self.deep().into(),
            19 | 20 => self.bad_params().into(),
            21..=23 => self.half_utf8(),
            24 => {
                let length = self.rng.below(300);
                self.rng.bytes(length)
            }
            25 | 26 => self.odd_syntax().into(),
            _ => self.near_the_cap(),
        }
    }

    /// An id that no other frame has.
    fn id(&mut self) -> String {
        self.number += 1;
        match self.rng.below(4) {
            0 => format!("\"é{}\"", self.number),
            1 => format!("-{}", self.number),
            2 => format!("{}", i64::MAX - self.number.cast_signed()),
            _ => self.number.to_string(),
        }
    }

    fn message(&mut self) -> FrameMembers {
        let method = self.rng.pick(&[
            "permissionProfile/list",
            "permissionProfile/list",
            "mcpServer/event/stream/start",
            "memory/status",
            "no/such/method",
            "initialize",
            "",
        ]);
        let params = self.rng.pick(&[
            "{}",
            r#"{"limit":5}"#,
            r#"{"cursor":null,"cwd":"x","limit":null}"#,
            r#"{"unknown":{"a":[1,2.5e3,"ü\n",false]},"x":"\ud83d\ude00"}"#,
        ]);
        let mut members = vec![
            ("id".to_owned(), self.id()),
            ("method".to_owned(), format!("\"{method}\"")),
            ("params".to_owned(), params.to_owned()),
        ];
        if self.rng.one_in(3) {
            members.push(("jsonrpc".to_owned(), "\"2.0\"".to_owned()));
        }
        if self.rng.one_in(4) {
            let trace = r#"{"traceparent":"00-0-0-01"}"#;
            members.push(("trace".to_owned(), trace.to_owned()));
        }
        members
    }

    /// Writes an object: members in any order, with any whitespace, names sometimes escaped.
    fn object(&mut self, mut members: FrameMembers) -> String {
        for at in (1..members.len()).rev() {
            members.swap(at, self.rng.below(at + 1));
        }
        let mut text = String::from("{");
        for (at, (name, value)) in members.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let blank = self.rng.pick(&["", "", "", " ", "\t", "  \r"]);
            let name = match name.strip_prefix('i') {
                Some(rest) if self.rng.one_in(8) => format!("\\u0069{rest}"),
                _ => name.clone(),
            };
            text.push_str(&format!(
                "{comma}{blank}\"{name}\"{blank}:{blank}{value}{blank}"
            ));
        }
        text.push('}');
        text
    }

    fn set(members: &mut FrameMembers, name: &str, value: impl Into<String>) {
        members.retain(|(it, _)| it != name);
        members.push((name.to_owned(), value.into()));
    }

    fn good(&mut self) -> String {
        let mut members = self.message();
        if self.rng.one_in(4) {
            members.retain(|(name, _)| name != "id");
        }
        if self.rng.one_in(4) {
            members.retain(|(name, _)| name != "params");
        }
        self.object(members)
    }

    /// A valid frame with random damage.
    fn broken(&mut self) -> Vec<u8> {
        let mut frame = self.good().into_bytes();
        for _ in 0..=self.rng.below(3) {
            let at = self.rng.below(frame.len().max(1)).min(frame.len());
            match self.rng.below(6) {
                0 => frame.truncate(at),
                1 if at < frame.len() => frame[at] ^= 1 << self.rng.below(8),
                2 => {
                    let byte = b"{}[]\",:\\0-e.tfn \t\r\n\0\x7f\xff"[self.rng.below(22)];
                    frame.insert(at, byte);
                }
                3 if at < frame.len() => drop(frame.remove(at)),
                4 => {
                    let end = (at + self.rng.below(20)).min(frame.len());
                    let again = frame[at..end].to_vec();
                    frame.splice(at..at, again);
                }
                _ => frame.extend_from_slice(&frame.clone()[at..]),
            }
        }
        frame
    }

    fn not_an_object(&mut self) -> String {
        let batch = format!("[{},{}]", self.good(), self.good());
        let scalars = [
            "null", "true", "0", "-1.5e9", "\"{}\"", "[]", "[[[]]]", "1e999",
        ];
        match self.rng.one_in(2) {
            true => batch,
            false => self.rng.pick(&scalars).to_owned(),
        }
    }

    fn no_message(&mut self) -> String {
        let mut members = self.message();
        members.retain(|(name, _)| name != "method");
        if self.rng.one_in(2) {
            Self::set(&mut members, "Method", "\"permissionProfile/list\"");
        }
        self.object(members)
    }

    fn bad_id(&mut self) -> String {
        let mut members = self.message();
        let id = match self.rng.below(18) {
            0 => "null".to_owned(),
            1 => "1.5".to_owned(),
            2 => "1e3".to_owned(),
            3 => "1.0".to_owned(),
            4 => "true".to_owned(),
            5 => "{}".to_owned(),
            6 => "[7]".to_owned(),
            7 => "9223372036854775808".to_owned(),
            8 => "-9223372036854775809".to_owned(),
            9 => "123456789012345678901234567890123456789012345678901234567890".to_owned(),
            10 => "\"\\ud800\"".to_owned(),
            11 => "\"\\udc00 \\ud800\"".to_owned(),
            12 => format!("{}1{}", "[".repeat(100), "]".repeat(100)),
            // Around the maximum length, in bytes without escapes.
            13 => format!("\"{}\"", "a".repeat(1020 + self.rng.below(8))),
            14 => format!("\"{}\"", "é".repeat(510 + self.rng.below(5))),
            15 => format!("\"{}\"", "\\u0061".repeat(1020 + self.rng.below(8))),
            16 => format!("\"{}\"", "x".repeat(self.rng.below(self.cap / 2))),
            // The extreme values that are allowed.
            _ => self
                .rng
                .pick(&["9223372036854775807", "-9223372036854775808", "-0", "\"\""])
                .to_owned(),
        };
        Self::set(&mut members, "id", id);
        self.object(members)
    }

    fn duplicate_members(&mut self) -> String {
        let mut members = self.message();
        for _ in 0..=self.rng.below(2) {
            let (name, value) = match self.rng.below(8) {
                0 | 1 => ("id", self.id()),
                2 => ("id", "null".to_owned()),
                3 => ("method", "\"permissionProfile/list\"".to_owned()),
                4 => ("params", "{}".to_owned()),
                5 => ("jsonrpc", "\"1.0\"".to_owned()),
                6 => ("trace", "7".to_owned()),
                // Even once it is invalid.
                _ => ("result", "1".to_owned()),
            };
            members.push((name.to_owned(), value));
        }
        if self.rng.one_in(3) {
            let twice = r#"{"limit":1,"limit":2}"#;
            Self::set(&mut members, "params", twice);
        }
        self.object(members)
    }

    fn bad_method(&mut self) -> String {
        let mut members = self.message();
        let methods = [
            "null",
            "7",
            "true",
            "{}",
            "[\"permissionProfile/list\"]",
            "\"\\ud800\"",
            "\"\\u0000\"",
            "\"MODEL/LIST\"",
            "\"permissionProfile/list \"",
            "\"permissionProfile\\/list\"",
            "\"модель\"",
            "\"\\uD83D\\uDE00\"",
        ];
        let mut method = self.rng.pick(&methods).to_owned();
        if self.rng.one_in(6) {
            method = format!("\"{}\"", "long".repeat(self.rng.below(self.cap / 5)));
        }
        Self::set(&mut members, "method", method);
        if self.rng.one_in(3) {
            members.retain(|(name, _)| name != "id");
        }
        self.object(members)
    }

    fn answer(&mut self) -> String {
        let mut members = self.message();
        let result = self.rng.pick(&["{}", "null", "[1]"]).to_owned();
        let error = self
            .rng
            .pick(&[r#"{"code":1,"message":"x"}"#, "7", "null"])
            .to_owned();
        if self.rng.one_in(2) {
            Self::set(&mut members, "result", result);
        } else {
            Self::set(&mut members, "error", error);
        }
        if !self.rng.one_in(3) {
            members.retain(|(name, _)| name != "method");
        }
        if self.rng.one_in(3) {
            Self::set(&mut members, "id", "null");
        }
        self.object(members)
    }

    /// Nesting around the limit and far beyond it, in params and elsewhere.
    fn deep(&mut self) -> String {
        let depth = match self.rng.below(6) {
            0 => 61 + self.rng.below(6),
            1 => 120 + self.rng.below(20),
            2 => self.rng.below(60),
            3 => 1000 + self.rng.below(9000),
            _ => 63 + self.rng.below(2),
        };
        let nested = match self.rng.below(4) {
            0 => format!("{}{}", "[".repeat(depth), "]".repeat(depth)),
            1 => format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)),
            // Not closed.
            2 if self.rng.one_in(3) => "[".repeat(depth),
            // Brackets in a string, which are no nesting.
            2 => format!("\"{}\\\"\"", "[{".repeat(depth)),
            _ => {
                let pairs = depth / 2;
                format!("{}{{}}{}", "[{\"a\":".repeat(pairs), "}]".repeat(pairs))
            }
        };
        let mut members = self.message();
        match self.rng.below(4) {
            0 => Self::set(&mut members, "params", nested),
            1 => Self::set(&mut members, "trace", nested),
            2 => Self::set(&mut members, "params", format!(r#"{{"x":{nested}}}"#)),
            _ => {
                members.retain(|(name, _)| name != "method");
                Self::set(&mut members, "result", nested);
            }
        }
        self.object(members)
    }

    fn bad_params(&mut self) -> String {
        let mut members = self.message();
        if self.rng.one_in(4) {
            let path = self
                .rng
                .pick(&["{}", r#"{"path":7}"#, r#"{"path":null}"#, "null", "[7]"]);
            Self::set(&mut members, "method", "\"fs/readFile\"");
            Self::set(&mut members, "params", path);
            return self.object(members);
        }
        let params = self.rng.pick(&[
            "null",
            "7",
            "\"x\"",
            "[]",
            "[null,null,null]",
            r#"{"limit":-1}"#,
            r#"{"limit":1.5}"#,
            r#"{"limit":4294967296}"#,
            r#"{"limit":"5"}"#,
            r#"{"limit":1,"limit":1}"#,
            r#"{"cursor":7}"#,
            r#"{"cursor":"zebra"}"#,
            r#"{"cursor":"\ud800"}"#,
            r#"{"cwd":true}"#,
            r#"{"cwd":{}}"#,
            r#"{"x":1,"x":2}"#,
            r#"{"x":"\ud800"}"#,
        ]);
        Self::set(&mut members, "method", "\"permissionProfile/list\"");
        Self::set(&mut members, "params", params);
        if self.rng.one_in(5) {
            members.retain(|(name, _)| name != "params");
        }
        self.object(members)
    }

    /// A valid frame with invalid UTF-8 in it.
    fn half_utf8(&mut self) -> Vec<u8> {
        let mut frame = self.good().into_bytes();
        let bad: &[u8] = self.rng.pick(&[
            &b"\xff"[..],
            b"\xc3",
            b"\xe2\x82",
            b"\xf0\x9f\x98",
            b"\xc0\xaf",
            b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80",
            b"\x80",
        ]);
        let at = self.rng.below(frame.len() + 1);
        frame.splice(at..at, bad.iter().copied());
        frame
    }

    fn odd_syntax(&mut self) -> String {
        let good = self.good();
        match self.rng.below(12) {
            0 => good.replace('"', "'"),
            1 => good.replacen('}', ",}", 1),
            2 => format!("{good}{good}"),
            3 => format!("{good} x"),
            4 => format!("\u{feff}{good}"),
            5 => format!("/* hi */ {good}"),
            6 => good.replacen("{", "{\"n\":NaN,", 1),
            7 => good.replacen("{", "{\"n\":01,", 1),
            8 => good.replacen("{", "{\"n\":+1,", 1),
            9 => good.replacen("{", "{\"n\":1e999,", 1),
            10 => good.replacen("{", "{\"n\":\"\u{1}\",", 1),
            _ => self
                .rng
                .pick(&[
                    "", " ", "\r", "\u{c}", "{", "}", "nul", "\"", "{}", "--1", "-", "1.",
                ])
                .to_owned(),
        }
    }

    /// A valid request padded to the cap, or beyond.
    fn near_the_cap(&mut self) -> Vec<u8> {
        let mut members = self.message();
        let bare = self.object(members.clone()).len();
        let length = match self.rng.below(4) {
            0 => self.cap,
            1 => self.cap + 1,
            2 => self.cap - self.rng.below(4000),
            _ => self.cap + self.rng.below(2 * self.cap),
        };
        let filler = match self.rng.below(3) {
            0 => "x".repeat(length - bare),
            1 => "é".repeat((length - bare) / 2),
            _ => "\\n".repeat((length - bare) / 2),
        };
        Self::set(&mut members, "filler", format!("\"{filler}\""));
        let mut frame = self.object(members).into_bytes();
        // Spaces pad it to the exact length; truncating it would make it invalid JSON.
        frame.resize(length.max(frame.len().min(self.cap)), b' ');
        frame
    }
}
