//! Matching of a rule's words with a command's words.

use super::UNKNOWN;

/// Certainty that a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuleMatch {
    No,
    /// Depends on words that are unknown before the command runs.
    Maybe,
    Yes,
}

/// Folders whose programs are known by their bare names.
const PROGRAM_FOLDERS: [&str; 2] = ["/bin/", "/usr/bin/"];

/// Whether a restraining rule matches this command. It errs on the side of yes: the program counts
/// in any folder, options may stand anywhere and be combined, and options before a subcommand do
/// not hide it.
pub(super) fn restrained(rule: &[String], words: &[String]) -> RuleMatch {
    let (Some((program, rule)), Some((name, words))) = (rule.split_first(), words.split_first())
    else {
        return RuleMatch::No;
    };
    if is_unknown(name) {
        return RuleMatch::Maybe;
    }
    let is_program =
        name == program || !program.contains('/') && base_name(name).eq_ignore_ascii_case(program);
    if !is_program {
        return RuleMatch::No;
    }
    let (options, operands): (Vec<&String>, Vec<&String>) =
        rule.iter().partition(|word| is_option(word));
    options
        .into_iter()
        .map(|option| has_option(option, words))
        .fold(has_operands(&operands, words), RuleMatch::min)
}

/// Whether an allowing rule matches this command: it begins with exactly the rule's words.
pub(super) fn allowed(rule: &[String], words: &[String]) -> bool {
    let (Some((program, rule)), Some((name, words))) = (rule.split_first(), words.split_first())
    else {
        return false;
    };
    (name == program || program_name(name) == program) && words.starts_with(rule)
}

/// Returns a program's bare name if it lies in a standard folder, else the whole path.
pub(super) fn program_name(word: &str) -> &str {
    PROGRAM_FOLDERS
        .iter()
        .find_map(|folder| word.strip_prefix(folder))
        .filter(|name| !name.contains('/'))
        .unwrap_or(word)
}

/// Returns the last part of a path.
pub(super) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

pub(super) fn is_unknown(word: &str) -> bool {
    word.contains(UNKNOWN)
}

pub(super) fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Whether these operands come first, in this order, ignoring options and possible values of
/// options.
fn has_operands(operands: &[&String], words: &[String]) -> RuleMatch {
    let mut words = words.iter();
    for operand in operands {
        let mut may_be_value = false;
        loop {
            match words.next() {
                None => return RuleMatch::No,
                Some(word) if is_unknown(word) => return RuleMatch::Maybe,
                Some(word) if word == *operand => break,
                Some(word) if is_option(word) => may_be_value = !word.contains('='),
                Some(_) if may_be_value => may_be_value = false,
                Some(_) => return RuleMatch::No,
            }
        }
    }
    RuleMatch::Yes
}

fn has_option(option: &str, words: &[String]) -> RuleMatch {
    let letters = |word: &str| {
        let letters = word.strip_prefix('-')?;
        (!letters.starts_with('-')).then(|| letters.to_owned())
    };
    if let Some(rule_letters) = letters(option) {
        let word_letters: String = words.iter().filter_map(|it| letters(it)).collect();
        if rule_letters
            .chars()
            .all(|letter| word_letters.contains(letter))
        {
            return RuleMatch::Yes;
        }
    }
    let fit = |word: &String| {
        let name = word.split('=').next().unwrap_or(word);
        // Many programs accept an abbreviated long option.
        let is_beginning = name.len() > 2 && name.starts_with("--") && option.starts_with(name);
        if name == option {
            RuleMatch::Yes
        } else if is_unknown(word) || is_beginning {
            RuleMatch::Maybe
        } else {
            RuleMatch::No
        }
    };
    words.iter().map(fit).max().unwrap_or(RuleMatch::No)
}
