//! Quotes words into one line that a shell splits into the same words.

/// Words with another meaning at the beginning of a command.
const RESERVED: [&str; 18] = [
    "case", "coproc", "declare", "do", "done", "elif", "else", "esac", "export", "fi", "for",
    "function", "if", "in", "select", "then", "until", "while",
];

/// Joins the words into one line, quoted where needed.
pub fn quoted(words: &[String]) -> String {
    let mut out = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        let is_bare = |it: char| it.is_ascii_alphanumeric() || "_-./:=@+,".contains(it);
        let is_special = at == 0
            && (word.contains(['=', '@', '+', ',', ':']) || RESERVED.contains(&word.as_str()));
        if !word.is_empty() && word.chars().all(is_bare) && !is_special {
            out.push_str(word);
        } else {
            out.push_str(&format!("'{}'", word.replace('\'', r"'\''")));
        }
    }
    out
}
