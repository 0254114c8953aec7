use super::*;

/// A schema, a text, and the expected error; empty if the text matches.
const CASES: &[(&str, &str, &str)] = &[
    ("{}", "1", ""),
    (
        "{}",
        "hello",
        "it is no JSON: expected value at line 1 column 1",
    ),
    (
        "{}",
        "{} {}",
        "it is no JSON: trailing characters at line 1 column 4",
    ),
    (r#"{"type":"object"}"#, " {} \n", ""),
    (r#"{"type":"object"}"#, "[]", "the whole must be object"),
    (r#"{"type":["string","null"]}"#, "null", ""),
    (
        r#"{"type":["string","null"]}"#,
        "1",
        "the whole must be string or null",
    ),
    (r#"{"type":"integer"}"#, "1.0", ""),
    (r#"{"type":"integer"}"#, "1.5", "the whole must be integer"),
    (r#"{"enum":["a",1]}"#, "1.0", ""),
    (
        r#"{"enum":["a",1]}"#,
        "\"b\"",
        "the whole must be one of \"a\", 1",
    ),
    (r#"{"const":{"a":1,"b":2}}"#, r#"{"b":2,"a":1}"#, ""),
    (r#"{"const":true}"#, "false", "the whole must be true"),
    (
        r#"{"required":["a"],"properties":{"a":{"type":"string"}}}"#,
        "{}",
        "the whole has no `a`",
    ),
    (
        r#"{"properties":{"a":{"type":"string"}}}"#,
        r#"{"a":1}"#,
        "/a must be string",
    ),
    (
        r#"{"properties":{},"additionalProperties":false}"#,
        r#"{"a":1}"#,
        "/a must not be there",
    ),
    (
        r#"{"additionalProperties":{"type":"null"}}"#,
        r#"{"a":1}"#,
        "/a must be null",
    ),
    (
        r#"{"items":{"type":"string"}}"#,
        r#"["a",2]"#,
        "/1 must be string",
    ),
    (r#"{"prefixItems":[{}],"items":false}"#, "[1]", ""),
    (
        r#"{"prefixItems":[{}],"items":false}"#,
        "[1,2]",
        "/1 must not be there",
    ),
    (
        r#"{"minItems":1}"#,
        "[]",
        "the whole must have at least 1 items",
    ),
    (
        r#"{"maxItems":1}"#,
        "[1,2]",
        "the whole must have at most 1 items",
    ),
    (r#"{"uniqueItems":true}"#, "[1,2,1.0]", "/2 is there twice"),
    (
        r#"{"uniqueItems":true}"#,
        r#"[{"a":[0],"b":"x"},{"b":"x","a":[-0.0]}]"#,
        "/1 is there twice",
    ),
    (
        r#"{"minLength":2}"#,
        "\"ä\"",
        "the whole must have at least 2 characters",
    ),
    (
        r#"{"maxLength":2}"#,
        "\"abc\"",
        "the whole must have at most 2 characters",
    ),
    (
        r#"{"minProperties":1}"#,
        "{}",
        "the whole must have at least 1 members",
    ),
    (r#"{"minimum":2}"#, "1", "the whole must be at least 2"),
    (
        r#"{"exclusiveMaximum":2}"#,
        "2",
        "the whole must be less than 2",
    ),
    (r#"{"multipleOf":0.1}"#, "0.3", ""),
    (
        r#"{"multipleOf":2}"#,
        "3",
        "the whole must be a multiple of 2",
    ),
    (
        r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#,
        "1",
        "the whole fits none of `anyOf`",
    ),
    (
        r#"{"oneOf":[{"minimum":1},{"minimum":2}]}"#,
        "3",
        "the whole fits 2 of `oneOf`, not one",
    ),
    (
        r#"{"allOf":[{"minimum":1},{"maximum":2}]}"#,
        "3",
        "the whole must be at most 2",
    ),
    (
        r#"{"not":{"type":"null"}}"#,
        "null",
        "the whole fits what it must not",
    ),
    (
        r##"{"properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string"}}}"##,
        r#"{"a":1}"#,
        "/a must be string",
    ),
    (
        r##"{"properties":{"next":{"$ref":"#"}},"type":"object"}"##,
        r#"{"next":{"next":3}}"#,
        "/next/next must be object",
    ),
    (
        r#"{"properties":{"n":{"type":"integer"}},"patternProperties":{"^x-":{}},"additionalProperties":false}"#,
        r#"{"n":1,"x-a":2}"#,
        "",
    ),
    (
        r#"{"properties":{"n":{"type":"integer"}},"patternProperties":{"^x-":{}},"additionalProperties":false}"#,
        r#"{"n":"1"}"#,
        "/n must be integer",
    ),
    (
        r#"{"patternProperties":{},"additionalProperties":false}"#,
        r#"{"n":1}"#,
        "/n must not be there",
    ),
    (
        r##"{"$ref":"#"}"##,
        "1",
        "the whole: the schema goes round in circles",
    ),
];

/// Schemas with many paths to the same subschema, and the expected error.
const REPEATED_SUBSCHEMAS: &[(&str, &str, &str)] = &[
    (
        r##"{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}"##,
        "1",
        "the whole fits none of `anyOf`",
    ),
    (
        r##"{"oneOf":[{"$ref":"#"},{"allOf":[{"$ref":"#"},{"$ref":"#"}]},{"type":"integer"}]}"##,
        "1",
        "",
    ),
];

#[test]
fn repeated_subschemas_are_checked_once() {
    for (schema, text, wrong) in REPEATED_SUBSCHEMAS {
        let schema = Schema::read(schema).expect(schema);
        let actual = schema.check(text).err().unwrap_or_default().0;
        assert_eq!(actual, *wrong, "{:?} {text}", schema.0);
    }
    // A list in which each link may be of two kinds, and the last one is of neither.
    let kind = |name: &str| {
        format!(
            r##"{{"type":"object","required":["next"],"properties":{{"next":{{"$ref":"#"}},"{name}":{{}}}}}}"##
        )
    };
    let schema = format!(r#"{{"anyOf":[{},{}]}}"#, kind("a"), kind("b"));
    let schema = Schema::read(&schema).expect("a schema");
    let links = 100;
    let text = format!("{}1{}", r#"{"next":"#.repeat(links), "}".repeat(links));
    let actual = schema.check(&text).err().unwrap_or_default().0;
    assert_eq!(actual, "the whole fits none of `anyOf`");
    // A recursive schema for the deepest text that can be parsed.
    let schema = r##"{"anyOf":[{"type":"integer"},{"allOf":[{"properties":{"next":{"$ref":"#"}}}],"type":"object"}]}"##;
    let schema = Schema::read(schema).expect("a schema");
    assert_eq!(schema.check(&text), Ok(()));
}

#[test]
fn what_fits_and_what_does_not() {
    for (schema, text, wrong) in CASES {
        let schema = Schema::read(schema).expect(schema);
        let actual = schema.check(text).err().unwrap_or_default().0;
        assert_eq!(actual, *wrong, "{:?} {text}", schema.0);
    }
}

#[test]
fn invalid_schemas_are_rejected() {
    for (text, wrong) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("[]", "it is no object"),
        (r#"{"type":"text"}"#, "/type cannot be \"text\""),
        (r#"{"properties":{"a":3}}"#, "/properties/a is no schema"),
        (r#"{"required":"a"}"#, "/required cannot be \"a\""),
        (r#"{"anyOf":{}}"#, "/anyOf cannot be {}"),
        (r#"{"items":[{}]}"#, "/items is no schema"),
        (r#"{"minItems":-1}"#, "/minItems cannot be -1"),
        (
            r##"{"$ref":"#","type":"text"}"##,
            "/type cannot be \"text\"",
        ),
        (
            r#"{"patternProperties":{"^a":3}}"#,
            "/patternProperties/^a is no schema",
        ),
        (
            r##"{"$ref":"#/x"}"##,
            "/$ref: #/x leads nowhere in this schema",
        ),
        (
            r#"{"$ref":"http://x"}"#,
            "/$ref: http://x leads nowhere in this schema",
        ),
    ] {
        let actual = Schema::read(text).err().unwrap_or_default().0;
        assert_eq!(actual, wrong, "{text}");
    }
}

#[test]
fn agrees_with_a_reference_validator() {
    for (schema, text, wrong) in CASES {
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            continue;
        };
        let schema: Value = serde_json::from_str(schema).expect("JSON");
        // The reference validator treats an endless reference as no restriction.
        if schema == serde_json::json!({"$ref": "#"}) {
            continue;
        }
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        assert_eq!(
            validator.is_valid(&value),
            wrong.is_empty(),
            "{schema} {text}"
        );
    }
}
