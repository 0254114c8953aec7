//! Words written as one line that a shell takes apart into the same words.

/// Words that mean something else where a command begins.
const RESERVED: [&str; 18] = [
    "case", "coproc", "declare", "do", "done", "elif", "else", "esac", "export", "fi", "for",
    "function", "if", "in", "select", "then", "until", "while",
];

/// The words as one line.
pub fn quoted(words: &[String]) -> String {
    let mut out = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        let is_bare = |it: char| it.is_ascii_alphanumeric() || "_-./:=@+,".contains(it);
        let is_taken = at == 0
            && (word.contains(['=', '@', '+', ',', ':']) || RESERVED.contains(&word.as_str()));
        if !word.is_empty() && word.chars().all(is_bare) && !is_taken {
            out.push_str(word);
        } else {
            out.push_str(&format!("'{}'", word.replace('\'', r"'\''")));
        }
    }
    out
}
