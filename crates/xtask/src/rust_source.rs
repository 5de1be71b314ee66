//! Reads Rust sources as far as the checks need: what is code, what is comment or text, what is only for tests.
//!
//! This is a scanner, not a parser. It knows comments (nested too), strings, raw strings, byte strings and character
//! literals, and finds the end of an item by its braces. That is enough to count lines of code and to look for words in
//! code; it needs no dependency and does not care which edition or macro it reads.

/// `source` with comments, and the contents of strings and characters, turned into spaces. Lines stay where they are.
pub fn code_only(source: &str) -> String {
    let letters: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < letters.len() {
        let end = end_of_non_code(&letters, at);
        if end > at {
            blank(&letters[at..end], &mut code);
            at = end;
        } else {
            code.push(letters[at]);
            at += 1;
        }
    }
    code
}

/// `code` (as [`code_only`] gives it) without the items that stand under `#[cfg(test)]`. Lines stay where they are.
pub fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(MARK) {
        let (before, item) = rest.split_at(start);
        kept.push_str(before);
        let end = end_of_item(item);
        blank(&item[..end].chars().collect::<Vec<_>>(), &mut kept);
        rest = &item[end..];
    }
    kept.push_str(rest);
    kept
}

/// Lines that hold code outside tests: neither blank nor comment.
pub fn lines_of_code(source: &str) -> usize {
    // A string that spans lines counts by its first and last line only: its contents are data.
    without_tests(&code_only(source)).lines().filter(|line| !line.trim().is_empty()).count()
}

/// Whether `code` names `word` as a whole identifier followed by `after` (white space between them is ignored).
pub fn names(code: &str, word: &str, after: &str) -> Option<usize> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(word)
        .find(|(at, _)| {
            let starts = !code[..*at].ends_with(is_word);
            let rest = &code[at + word.len()..];
            starts && !rest.starts_with(is_word) && rest.trim_start().starts_with(after)
        })
        .map(|(at, _)| line_of(code, at))
}

/// The line of a byte position, counted from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

fn blank(letters: &[char], to: &mut String) {
    to.extend(letters.iter().map(|letter| if *letter == '\n' { '\n' } else { ' ' }));
}

/// Where the comment, string or character that starts at `at` ends; `at` itself if none starts there.
fn end_of_non_code(letters: &[char], at: usize) -> usize {
    match (letters[at], letters.get(at + 1)) {
        ('/', Some('/')) => find(letters, at, |letter| letter == '\n'),
        ('/', Some('*')) => end_of_block_comment(letters, at),
        ('"', _) => end_of_string(letters, at + 1),
        ('r', Some('"' | '#')) if !after_word(letters, at) || byte_prefix(letters, at) => {
            end_of_raw_string(letters, at)
        }
        ('\'', Some('\\')) => find(letters, at + 3, |letter| letter == '\'').min(letters.len() - 1) + 1,
        ('\'', Some(_)) if letters.get(at + 2) == Some(&'\'') => at + 3,
        _ => at,
    }
}

fn find(letters: &[char], from: usize, wanted: impl Fn(char) -> bool) -> usize {
    (from..letters.len()).find(|at| wanted(letters[*at])).unwrap_or(letters.len())
}

fn after_word(letters: &[char], at: usize) -> bool {
    at > 0 && (letters[at - 1].is_alphanumeric() || letters[at - 1] == '_')
}

/// Whether the `r` at `at` belongs to `br"..."` or `cr"..."`.
fn byte_prefix(letters: &[char], at: usize) -> bool {
    matches!(letters[at - 1], 'b' | 'c') && (at < 2 || !after_word(letters, at - 1))
}

fn end_of_block_comment(letters: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while at < letters.len() {
        match (letters[at], letters.get(at + 1)) {
            ('/', Some('*')) => (at, depth) = (at + 2, depth + 1),
            ('*', Some('/')) => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    letters.len()
}

fn end_of_string(letters: &[char], mut at: usize) -> usize {
    while at < letters.len() {
        match letters[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    letters.len()
}

fn end_of_raw_string(letters: &[char], start: usize) -> usize {
    let quote = find(letters, start + 1, |letter| letter != '#');
    if letters.get(quote) != Some(&'"') {
        // A raw identifier such as `r#type`.
        return start;
    }
    let hashes = quote - start - 1;
    let closes = |at: &usize| {
        letters[*at] == '"'
            && letters.len() - at > hashes
            && letters[at + 1..=at + hashes].iter().all(|letter| *letter == '#')
    };
    (quote + 1..letters.len()).find(closes).map_or(letters.len(), |at| at + 1 + hashes)
}

/// Where the item ends that `item` begins with, its attributes included: at the brace that closes its body, or at its
/// semicolon.
fn end_of_item(item: &str) -> usize {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (at, letter) in item.char_indices() {
        match letter {
            '{' => braces += 1,
            '(' | '[' => others += 1,
            ')' | ']' => others = others.saturating_sub(1),
            '}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return at + 1;
                }
            }
            ';' if braces == 0 && others == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_no_code() {
        let source = "let a = \"std::x // no\"; // std::y\nlet b = '\"'; /* std::z /* nested */ */ let c = '\\'';\n";
        let code = code_only(source);
        assert_eq!(code.lines().count(), 2);
        assert!(!code.contains("std") && !code.contains("nested") && !code.contains('"'), "{code}");
        assert!(code.contains("let c ="), "{code}");
    }

    #[test]
    fn raw_strings_and_lifetimes_are_told_apart() {
        let source =
            "fn f<'a>(r#type: &'a str) -> &'a str { let s = r#\"a \" { std:: \"#; let t = br\"std::\"; r#type }";
        let code = code_only(source);
        assert!(!code.contains("std"), "{code}");
        assert!(code.ends_with("r#type }") && code.contains("<'a>"), "{code}");
    }

    #[test]
    fn items_for_tests_are_left_out() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { {} }\n}\nfn c() {}\n#[cfg(test)]\nmod other;\nfn d() {}\n";
        let kept = without_tests(source);
        assert!(kept.contains("fn a") && kept.contains("fn c") && kept.contains("fn d"), "{kept}");
        assert!(!kept.contains("fn b") && !kept.contains("mod other"), "{kept}");
        assert_eq!(kept.lines().count(), source.lines().count());
        assert_eq!(lines_of_code(source), 3);
    }

    #[test]
    fn an_attribute_between_mark_and_item_belongs_to_the_item() {
        let source = "#[cfg(test)]\n#[expect(x, reason = \"y; z\")]\nfn only_for_tests(a: [u8; 2]) -> u8 { a[0] }\nfn kept() {}\n";
        let kept = without_tests(&code_only(source));
        assert!(!kept.contains("only_for_tests") && kept.contains("fn kept"), "{kept}");
    }

    #[test]
    fn a_name_is_a_whole_word() {
        assert_eq!(names("use core::x;\nuse std :: y;", "std", "::"), Some(2));
        assert_eq!(names("my_std::x; stdlib::y; std", "std", "::"), None);
    }

    #[test]
    fn unclosed_things_end_with_the_file() {
        for source in ["\"open", "/* open", "r#\"open\"", "'\\", "#[cfg(test)] mod a {"] {
            assert_eq!(without_tests(&code_only(source)).len(), source.len(), "{source}");
        }
    }
}
