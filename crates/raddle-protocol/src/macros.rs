//! Three kinds of wire enum that plain serde derives cannot express, because each must keep unknown
//! values and pass them on unchanged.
//!
//! A known name with a malformed body is always an error; only an unknown name becomes
//! `Unrecognized`.

/// Declares a string enum that keeps unknown strings. `or Variant` names the default for an absent
/// member.
macro_rules! open_enum {
    (
        $(#[doc = $doc:expr])*
        pub enum $name:ident $( or $default:ident )? {
            $( $(#[doc = $vdoc:expr])* $variant:ident = $text:literal, )+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[doc = $vdoc])* $variant, )+
            /// A value unknown to this version, kept unchanged.
            Unrecognized(Box<str>),
        }

        impl $name {
            /// Names known to this version, as spelled on the wire.
            pub const KNOWN: &'static [&'static str] = &[$($text),+];

            /// Returns the name as spelled on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )+
                    Self::Unrecognized(text) => text,
                }
            }
        }

        $(
            impl Default for $name {
                fn default() -> Self {
                    Self::$default
                }
            }
        )?

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $( $text => Self::$variant, )+
                    _ => Self::Unrecognized(text.into()),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Ok(Self::from(text.as_ref()))
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let text: &[&str] = &[$($doc),*];
                schemars::json_schema!({
                    "description": $crate::macros::prose(text),
                    "enum": Self::KNOWN,
                    "type": "string",
                })
            }
        }
    };
}

/// Declares a union of objects distinguished by one member, which keeps objects with unknown tags.
macro_rules! tagged {
    (
        $(#[doc = $doc:expr])*
        pub enum $name:ident by $tag:literal {
            $( $(#[doc = $vdoc:expr])* $variant:ident $( ( $body:ty ) )? = $text:literal, )+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(tag = $tag)]
        pub enum $name {
            $( $(#[doc = $vdoc])* #[serde(rename = $text)] $variant $( ( $body ) )?, )+
            /// A variant unknown to this version, kept unchanged.
            #[serde(untagged)]
            Unrecognized(serde_json::Map<String, serde_json::Value>),
        }

        impl $name {
            /// Tags known to this version, as spelled on the wire.
            pub const KNOWN: &'static [&'static str] = &[$($text),+];
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error as _;
                #[derive(serde::Deserialize)]
                #[serde(expecting = "an object")]
                struct Tag<'a> {
                    #[serde(rename = $tag, borrow)]
                    tag: std::borrow::Cow<'a, str>,
                }
                // Read the object once as raw text, look at its tag, then read the variant itself:
                // no lossy intermediate form is buffered, and a malformed known variant stays an
                // error.
                let raw = <Box<serde_json::value::RawValue>>::deserialize(deserializer)?;
                let Tag { tag } = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
                match tag.as_ref() {
                    $( $text => tagged!(@read $name $variant raw D $( $body )?), )+
                    _ => serde_json::from_str(raw.get()).map($name::Unrecognized).map_err(D::Error::custom),
                }
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let text: &[&str] = &[$($doc),*];
                let arms = vec![$(
                    $crate::macros::tagged_arm(
                        tagged!(@schema generator $( $body )?),
                        $tag, $text,
                        concat!(stringify!($variant), stringify!($name)),
                        &[$($vdoc),*],
                    ),
                )+];
                schemars::json_schema!({ "description": $crate::macros::prose(text), "oneOf": arms })
            }
        }
    };
    (@read $name:ident $variant:ident $raw:ident $d:ident) => { Ok($name::$variant) };
    (@read $name:ident $variant:ident $raw:ident $d:ident $body:ty) => {
        serde_json::from_str::<$body>($raw.get())
            .map($name::$variant)
            .map_err(|error| $d::Error::custom(format_args!("{}: {error}", stringify!($variant))))
    };
    (@schema $generator:ident) => { schemars::json_schema!({ "type": "object" }) };
    (@schema $generator:ident $body:ty) => { <$body as schemars::JsonSchema>::json_schema($generator) };
}

/// Declares a union of bare names and one-member objects, which keeps unknown names.
macro_rules! externally_tagged {
    (
        $(#[doc = $doc:expr])*
        pub enum $name:ident $( or $default:ident )? {
            $( $(#[doc = $vdoc:expr])* $variant:ident $( ( $body:ty ) )? = $text:literal, )+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        pub enum $name {
            $( $(#[doc = $vdoc])* #[serde(rename = $text)] $variant $( ( $body ) )?, )+
            /// A form unknown to this version, kept unchanged.
            #[serde(untagged)]
            Unrecognized(serde_json::Value),
        }

        $(
            impl Default for $name {
                fn default() -> Self {
                    Self::$default
                }
            }
        )?

        impl $name {
            /// Names known to this version, as spelled on the wire.
            pub const KNOWN: &'static [&'static str] = &[$($text),+];
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error as _;
                let value = serde_json::Value::deserialize(deserializer)?;
                let key = match &value {
                    serde_json::Value::String(text) => text.clone(),
                    serde_json::Value::Object(map) if map.len() == 1 => {
                        map.keys().next().cloned().unwrap_or_default()
                    }
                    serde_json::Value::Object(_) => return Ok(Self::Unrecognized(value)),
                    _ => return Err(D::Error::custom(concat!("expected a name or an object for ", stringify!($name)))),
                };
                match key.as_str() {
                    $( $text => externally_tagged!(@read $name $variant value key D $( $body )?), )+
                    _ => Ok(Self::Unrecognized(value)),
                }
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let text: &[&str] = &[$($doc),*];
                let arms: Vec<schemars::Schema> = vec![$(
                    $crate::macros::externally_tagged_arm(
                        externally_tagged!(@schema generator $( $body )?),
                        $text,
                        concat!(stringify!($variant), stringify!($name)),
                        &[$($vdoc),*],
                    ),
                )+];
                schemars::json_schema!({ "description": $crate::macros::prose(text), "oneOf": arms })
            }
        }
    };
    (@read $name:ident $variant:ident $value:ident $key:ident $d:ident) => {
        if $value.is_string() { Ok($name::$variant) } else { Ok($name::Unrecognized($value)) }
    };
    (@read $name:ident $variant:ident $value:ident $key:ident $d:ident $body:ty) => {
        match $value {
            serde_json::Value::Object(mut map) => {
                let body = map.remove(&$key).unwrap_or_default();
                serde_json::from_value::<$body>(body)
                    .map($name::$variant)
                    .map_err(|error| $d::Error::custom(format_args!("{}: {error}", $key)))
            }
            other => Ok($name::Unrecognized(other)),
        }
    };
    (@schema $generator:ident) => { None };
    (@schema $generator:ident $body:ty) => { Some($generator.subschema_for::<$body>()) };
}

/// Joins doc lines into one paragraph per block separated by blank lines.
pub(crate) fn prose(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines.iter().map(|line| line.trim()) {
        if line.is_empty() {
            text.push_str("\n\n");
        } else {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push(' ');
            }
            text.push_str(line);
        }
    }
    text
}

pub(crate) fn tagged_arm(
    mut body: schemars::Schema,
    tag: &str,
    name: &str,
    title: &str,
    doc: &[&str],
) -> schemars::Schema {
    use serde_json::json;
    let object = body.ensure_object();
    object.insert("title".into(), json!(title));
    object.insert("description".into(), json!(prose(doc)));
    object.entry("type").or_insert_with(|| json!("object"));
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        let kind = json!({ "enum": [name], "title": format!("{title}Type"), "type": "string" });
        properties.insert(tag.to_owned(), kind);
    }
    let required = object.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        required.push(json!(tag));
    }
    body
}

pub(crate) fn externally_tagged_arm(
    body: Option<schemars::Schema>,
    name: &str,
    title: &str,
    doc: &[&str],
) -> schemars::Schema {
    match body {
        None => {
            schemars::json_schema!({ "description": prose(doc), "enum": [name], "type": "string" })
        }
        Some(body) => schemars::json_schema!({
            "additionalProperties": false,
            "description": prose(doc),
            "properties": { name: body },
            "required": [name],
            "title": title,
            "type": "object",
        }),
    }
}
