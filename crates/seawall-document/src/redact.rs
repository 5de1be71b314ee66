//! Keeps secrets that were pasted into a document out of every message about it.
//!
//! No document has a place for a secret, so each one in it is a mistake, and the message about a mistake shows the line
//! it is on. Two nets, both erring towards hiding: places the checks know of, and text that looks like a secret. A
//! third one, values whose name is one that a secret would have, is for the kinds of documents that ask for it: in
//! others a `max_tokens` is a number like any other.

use std::ops::Range;

/// Beginnings of well-known keys and tokens.
const PREFIXES: [&str; 11] = ["sk-", "sk_", "pk-", "rk_", "ghp_", "xoxb-", "eyJ", "Bearer ", "bearer ", "hf_", "AIza"];

/// Shortest text after a prefix that is taken for a secret: a real one is longer, a word like `key-vault` is not.
const SHORTEST_PREFIXED: usize = 12;

/// Shortest text that is taken for a secret by its letters alone: Azure's shortest keys have 32 characters.
const SHORTEST_RANDOM: usize = 24;

/// Whether `text` looks like a key, a token or a password rather than a name.
pub fn looks_secret(text: &str) -> bool {
    let text = text.trim();
    if PREFIXES.iter().any(|prefix| text.starts_with(prefix)) && text.len() >= SHORTEST_PREFIXED {
        return true;
    }
    text.split(|character: char| !is_token_character(character)).any(|word| {
        // A random text of letters and digits changes between them often; a name such as `gpt-4o-mini-2024-07-18`
        // has words in between, and an identifier (a UUID) has short parts.
        let longest_part = word.split(['-', '_']).map(str::len).max().unwrap_or(0);
        longest_part >= SHORTEST_RANDOM && changes_of_kind(word) >= 4
    })
}

fn is_token_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '+' | '=' | '~')
}

fn changes_of_kind(word: &str) -> usize {
    let kinds: Vec<bool> = word.chars().map(|character| character.is_ascii_digit()).collect();
    kinds.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Whether a setting of that name would hold a secret, if there were such a setting.
pub(crate) fn is_secret_name(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let names_a_place = ["_file", "_env", "_path"].iter().any(|end| key.ends_with(end));
    !names_a_place
        && ["key", "secret", "token", "passw", "credential", "auth", "bearer"].iter().any(|part| key.contains(part))
}

/// `text` with asterisks in place of `secrets` and of everything that looks like one. Its length and its lines stay.
pub(crate) fn masked(text: &str, secrets: &[Range<usize>], by_name: bool) -> String {
    let mut hidden: Vec<Range<usize>> = secrets.to_vec();
    hidden.extend(suspicious(text, by_name));
    let mut bytes = text.as_bytes().to_vec();
    for span in hidden {
        for byte in bytes.iter_mut().take(span.end).skip(span.start) {
            if !matches!(*byte, b'\n' | b'\r') {
                *byte = b'*';
            }
        }
    }
    // A span that cut a character in two would leave its other half: lossy conversion keeps that from failing.
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let lossy = error.into_bytes().into_iter().map(|byte| if byte.is_ascii() { byte } else { b'*' }).collect();
        String::from_utf8(lossy).expect("ASCII is UTF-8")
    })
}

/// The spans of words, and of values of settings with a secret's name, that look like a secret. Needs no parser: the
/// line with the syntax error may be the one with the secret.
fn suspicious(text: &str, by_name: bool) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        spans.extend(
            suspicious_in_line(line, by_name).into_iter().map(|span| line_start + span.start..line_start + span.end),
        );
        line_start += line.len();
    }
    spans
}

fn suspicious_in_line(line: &str, by_name: bool) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut position = 0;
    for word in line.split_inclusive(|character: char| character.is_whitespace() || "\"'`,[]{}".contains(character)) {
        let bare =
            word.trim_end_matches(|character: char| character.is_whitespace() || "\"'`,[]{}".contains(character));
        if looks_secret(bare) || bare.rsplit(['=', ':', '/', '@']).any(looks_secret) {
            spans.push(position..position + bare.len());
        }
        position += word.len();
    }
    spans.extend(if by_name { named_value(line) } else { None });
    spans
}

/// The value in `api_key = ...`, where it is a literal and not a table or list.
fn named_value(line: &str) -> Option<Range<usize>> {
    let equals = line.find('=')?;
    let key = line[..equals].trim().trim_matches(['"', '\'']);
    let value = line[equals + 1..].trim();
    if !is_secret_name(key.rsplit('.').next().unwrap_or(key)) || value.starts_with(['{', '[']) || value.is_empty() {
        return None;
    }
    let start = equals + 1 + line[equals + 1..].find(value)?;
    Some(start..start + value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_from_names() {
        for secret in [
            "sk-proj-abcdefghijkl",
            "Bearer abcdefghijkl",
            "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
            "8f3Kd02LmQ9zX7cV5bN1aS4dF6gH",
            "https://host/?key=8f3Kd02LmQ9zX7cV5bN1aS4dF6gH",
        ] {
            assert!(looks_secret(secret), "{secret}");
        }
        for name in [
            "OPENAI_API_KEY",
            "gpt-4o-mini-2024-07-18",
            "5a1c9f0e-1b2d-4c3e-8f90-a1b2c3d4e5f6",
            "meta-llama/Llama-3.3-70B-Instruct",
            "/run/secrets/openai-key",
            "AZURE_OPENAI_KEY_SWEDEN_CENTRAL_2",
            "sk-",
        ] {
            assert!(!looks_secret(name), "{name}");
        }
    }

    #[test]
    fn masking_keeps_length_and_lines() {
        let text = "api_key = \"hunter2\"\nname = \"x\"\n";
        let masked = masked(text, &[], true);
        assert_eq!(masked, "api_key = *********\nname = \"x\"\n");
        assert_eq!(masked.len(), text.len());
    }

    #[test]
    fn a_key_on_a_broken_line_is_masked() {
        assert!(!masked("key = \"sk-abcdefghijklmnop\n", &[], true).contains("abcdef"));
        assert!(!masked("sk-abcdefghijklmnop\n", &[], true).contains("abcdef"));
        assert!(!masked("x = [\"a\", \"sk-abcdefghijklmnop\"]\n", &[], true).contains("abcdef"));
    }

    #[test]
    fn a_known_place_is_masked_even_inside_a_character() {
        assert_eq!(masked("a = \"pässword\"", std::slice::from_ref(&(4..15)), true), "a = ***********");
        assert_eq!(masked("ä", std::slice::from_ref(&(0..1)), true), "**");
        assert_eq!(masked("keys = [{ env = \"X\" }]", &[], true), "keys = [{ env = \"X\" }]");
    }
    #[test]
    fn a_name_hides_its_value_only_where_that_is_asked_for() {
        assert_eq!(masked("max_tokens = 512", &[], false), "max_tokens = 512");
        assert!(!masked("max_tokens = \"sk-abcdefghijklmnop\"", &[], false).contains("abcdef"));
    }
}
