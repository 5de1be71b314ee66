//! No text brings the reader down, and every error has a place inside the text.

use super::common;
use proptest::prelude::*;

/// Pieces of config files, right and wrong: their mixtures reach deeper than random characters.
const PIECES: [&str; 36] = [
    "[server]\n",
    "[[models]]\n",
    "[[models.deployments]]\n",
    "[[tenants]]\n",
    "[models.queue]\n",
    "[models.retry]\n",
    "[models]\n",
    "[[server]]\n",
    "name = \"a\"\n",
    "name = \"*\"\n",
    "name = 1\n",
    "url = \"http://h\"\n",
    "url = \"http://[::1\"\n",
    "keys = [{ env = \"KEY\" }]\n",
    "keys = [\"sk-abcdefghijklmnop\"]\n",
    "keys = {}\n",
    "models = [\"*\"]\n",
    "models = [\"a\", \"b\"]\n",
    "boundary = \"eu\"\n",
    "capacity = { provisioned = 1 }\n",
    "capacity = \"provisioned\"\n",
    "capacity = []\n",
    "weight = 0\n",
    "weight = 99999999999999999999\n",
    "credential = { entra = {} }\n",
    "credential = { managed_identity = {} }\n",
    "dialect = \"azure\"\n",
    "patience = \"1h\"\n",
    "listen = \"0.0.0.0:1\"\n",
    "allow_anonymous = true\n",
    "aliases = [\"a\"]\n",
    "a.b.c = 1\n",
    "deployments = [1, {}]\n",
    "\"\" = 1\n",
    "ü = \"ü",
    "= [[\n",
];

fn reads_without_a_panic(text: &str) {
    let Err(errors) = common::parse(text) else { return };
    assert!(!errors.problems().is_empty());
    for problem in errors.problems() {
        assert!(problem.span.as_ref().is_none_or(|span| text.get(span.clone()).is_some()));
        assert!(!problem.message.is_empty() && !problem.message.contains("mistake of Seawall"), "{text}\n{problem:?}");
        assert!(problem.suggestion.is_some(), "{problem:?}");
    }
    let rendered = errors.render(true);
    assert!(!rendered.contains("sk-abcdefghijklmnop"), "{rendered}");
    assert!(errors.to_json().starts_with('['));
}

proptest! {
    #[test]
    fn any_text(text in "\\PC{0,200}") {
        reads_without_a_panic(&text);
    }

    #[test]
    fn any_characters_of_the_syntax(text in "[\\[\\]{}=\"'#.,a-c0-9 \n\r\u{e4}\\\\]{0,80}") {
        reads_without_a_panic(&text);
    }

    #[test]
    fn any_mixture_of_pieces(indices in prop::collection::vec(0..PIECES.len(), 0..25)) {
        let text: String = indices.into_iter().map(|index| PIECES[index]).collect();
        reads_without_a_panic(&text);
    }

    #[test]
    fn any_damage_to_an_example(position in 0_usize..4000, length in 0_usize..6, insert in "[\\[\\]{}=\"a1\n]{0,3}") {
        let mut text = include_str!("../../../../examples/azure-provisioned-spillover.toml").to_owned();
        let floor = |position: usize| (0..=position.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let range = floor(position)..floor(position + length);
        text.replace_range(range, &insert);
        reads_without_a_panic(&text);
    }
}
