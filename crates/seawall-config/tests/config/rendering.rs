//! What people and machines see of a wrong file, and what nobody may see.

use super::common;

/// Five mistakes of five kinds.
const FIVE: &str = r#"[server]
listen = "127.0.0.1:8080"
drain_limt = "30s"

[[models]]
name = "gpt-4o"
policy = "prioritty"

[models.queue]
patience = "10"

[[models.deployments]]
name = "sweden"
url = "https://example.openai.azure.com"
dialect = "azure"
weight = 0
credential = { env = "UP" }

[[tenants]]
name = "검색"
keys = [{ env = "KEY" }]
models = ["gpt-4"]
"#;

#[test]
fn five_mistakes_are_five_errors() {
    let errors = common::parse(FIVE).expect_err("five mistakes");
    assert_eq!(errors.problems().len(), 5);
    insta::assert_snapshot!("five_mistakes", errors.render(false));
    insta::assert_snapshot!("five_mistakes_json", errors.to_json());
}

#[test]
fn color_comes_only_when_asked_for() {
    let errors = common::parse(FIVE).expect_err("five mistakes");
    assert!(!errors.render(false).contains('\u{1b}'));
    assert!(errors.render(true).contains("\u{1b}["));
}

#[test]
fn a_pasted_secret_is_in_no_message() {
    // Neither a prefix nor its letters give this one away: it is known by its place only.
    let plain = "Tr0ub4dor-and-3";
    let known = "sk-proj-Zm9vYmFyYmF6cXV4";
    let deployment = |line: &str| {
        format!("[[models]]\nname = \"m\"\n[[models.deployments]]\nname = \"d\"\nurl = \"http://h\"\n{line}\n")
    };
    for secret in [plain, known] {
        for text in [
            deployment(&format!("credential = \"{secret}\"")),
            deployment(&format!("key = \"{secret}\"")),
            deployment(&format!("api_key = '''\n{secret}'''")),
            deployment(&format!("credential = {{ key = \"{secret}\" }}")),
            deployment(&format!("credential = [\"{secret}\"]")),
            deployment(&format!("credential = {{ entra = {{ client_secret = \"{secret}\" }} }}")),
            deployment(&format!("api_key = \"{secret}")),
            deployment(&format!("[models.deployments.token]\nvalue = \"{secret}\"")),
            format!("[[tenants]]\nname = \"t\"\nkey = \"{secret}\"\n"),
            format!("[[tenants]]\nname = \"t\"\nkeys = \"{secret}\"\n"),
            format!("[[tenants]]\nname = \"t\"\nkeys = [\"{secret}\"]\n"),
            format!("[[tenants]]\nname = \"t\"\nkeys = [{{ sha256 = \"{secret}\" }}]\n"),
            deployment(&format!("credential = {{ env = \"{secret}\" }}")),
            deployment("").replace("http://h", &format!("http://me:{secret}@h/")),
            deployment("").replace("http://h", &format!("http://h/?key={secret}")),
        ] {
            let errors = common::parse(&text).expect_err("a secret in the file");
            let shown = format!("{}{}{errors:?}", errors.render(true), errors.to_json());
            assert!(!shown.contains(secret), "{text}\n{shown}");
        }
    }
}

#[test]
fn a_well_known_secret_is_in_no_message_wherever_it_was_pasted() {
    let secret = "sk-proj-Zm9vYmFyYmF6cXV4";
    for text in [
        format!("{secret}\n"),
        format!("{secret} = 1\n"),
        format!("[{secret}]\nx = 1\n"),
        format!("[server]\nlisten = \"{secret}\"\n"),
        format!("[[tenants]]\nname = \"{secret}\"\nkeys = [{{ file = \"{secret}\" }}]\nmodels = [\"{secret}\"]\n"),
        format!("[[models]]\nname = \"m\"\npolicy = \"{secret}\"\ncapacity = \"{secret}\"\n"),
        format!("[[models]]\nname = \"{secret}\"\naliases = [\"{secret}\"]\n"),
    ] {
        let errors = common::parse(&text).expect_err("a secret in the file");
        let shown = format!("{}{}{errors:?}", errors.render(true), errors.to_json());
        assert!(!shown.contains(secret), "{text}\n{shown}");
    }
}
