//! Specification of the patch tool, as the model reads it.

use raddle_core::ports::{FreeformSpec, ToolSpec};
use serde_json::json;

/// Grammar of a patch, for models with constrained output.
const GRAMMAR: &str = r#"start: "*** Begin Patch" LF section+ "*** End Patch" LF?

section: add | delete | update
add: "*** Add File: " path LF added+
delete: "*** Delete File: " path LF
update: "*** Update File: " path LF move? chunk*
move: "*** Move to: " path LF

chunk: place* line+ end?
place: /@@( .+)?/ LF
line: /[ +-].*/ LF
added: /[+].*/ LF
end: "*** End of File" LF

path: /.+/

%import common.LF
"#;

/// Returns the specification: the patch is either the one argument or the whole input.
pub fn spec() -> ToolSpec {
    ToolSpec {
        name: "apply_patch".to_owned(),
        description: DESCRIPTION.to_owned(),
        schema: json!({
            "type": "object",
            "properties": {
                "input": {"type": "string", "description": "The whole patch, from `*** Begin Patch` to `*** End Patch`."}
            },
            "required": ["input"],
            "additionalProperties": false
        }),
        freeform: Some(FreeformSpec {
            description: format!("{DESCRIPTION} Write the patch itself, without JSON around it."),
            grammar: GRAMMAR.to_owned(),
        }),
    }
}

const DESCRIPTION: &str = "Makes, changes, moves and removes files by a patch. All of it is done, or nothing.

A patch looks like this:

*** Begin Patch
*** Add File: notes/new.txt
+every line of a new file begins with a plus
*** Update File: src/old.py
*** Move to: src/new.py
@@ class Greeter:
@@     def greet(self):
         name = self.name
-        return 'hello ' + name
+        return f'good day, {name}'
*** Delete File: notes/old.txt
*** End Patch

Paths are relative to the working directory, or absolute. `*** Move to:` is optional. In an update, a line that \
stays begins with a space, one that goes with `-`, one that comes with `+`. Give about three unchanged lines before and after each change. Where that does not \
make the place unique, put a line that stands before it after `@@`, such as that of its class or function. Each place in a file \
gets a chunk of its own, begun by `@@`, in the order of the file. Put `*** End of File` after a chunk that is at the very end.";
