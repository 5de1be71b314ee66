//! Each kind of mistake: one error, at its line, with a remedy.

use super::common;
use seawall_config::{Errors, Overrides};

/// A right file; each case changes one piece of it.
const GOOD: &str = r#"[server]
listen = "127.0.0.1:8080"
admin = "127.0.0.1:9090"

[[models]]
name = "chat"
aliases = ["talk"]
policy = "priority"

[models.queue]
patience = "10s"

[[models.deployments]]
name = "one"
url = "https://host/v1"
dialect = "openai"
boundary = "eu"
capacity = { standard = 5 }
weight = 1
credential = { env = "UP" }

[[models.deployments]]
name = "two"
url = "https://host/v1"

[[tenants]]
name = "search"
keys = [{ env = "KEY" }]
models = ["chat"]
boundary = "eu"
"#;

/// Changes `from` to `to` in [`GOOD`] and gives the one error of the result, with its line.
fn one_error(from: &str, to: &str) -> (Errors, usize, String, String) {
    assert!(GOOD.contains(from), "the right file has no {from}");
    let text = GOOD.replacen(from, to, 1);
    let errors = common::parse(&text).expect_err(to);
    assert_eq!(errors.problems().len(), 1, "{to}\n{errors}");
    let problem = errors.problems()[0].clone();
    let line = errors.position(&problem).map_or(0, |(line, _)| line);
    (errors, line, problem.message, problem.suggestion.expect("a remedy"))
}

/// Each case: what is changed, into what, the error's line, a part of its message, a part of its remedy.
fn check(cases: &[(&str, &str, usize, &str, &str)]) {
    for (from, to, line, message, remedy) in cases {
        let (errors, its_line, its_message, its_remedy) = one_error(from, to);
        assert!(its_message.contains(message), "{to}: {its_message}");
        assert!(its_remedy.contains(remedy), "{to}: {its_remedy}");
        assert_eq!(its_line, *line, "{errors}");
    }
}

#[test]
fn the_right_file_is_right() {
    common::parse(GOOD).unwrap_or_else(|errors| panic!("{errors}"));
}

#[test]
fn keys_that_do_not_exist() {
    check(&[
        ("patience =", "patiance =", 11, "unknown key `patiance` in `[models.queue]`", "did you mean `patience`?"),
        (
            "weight =",
            "color =",
            19,
            "unknown key `color` in `[[models.deployments]]`",
            "the keys here are `name`, `url`",
        ),
        ("[server]", "[sever]", 1, "unknown key `sever` at the top of the file", "did you mean `server`?"),
        ("standard = 5", "standart = 5", 18, "unknown key `standart` in `capacity`", "did you mean `standard`?"),
        ("{ env = \"UP\" }", "{ envv = \"UP\" }", 20, "unknown key `envv`", "did you mean `env`?"),
        ("[[tenants]]", "[[tenant]]", 26, "unknown key `tenant`", "did you mean `tenants`?"),
        ("[[models]]", "[[model]]", 5, "unknown key `model`", "did you mean `models`?"),
    ]);
}

#[test]
fn keys_that_are_missing() {
    check(&[
        (
            "url = \"https://host/v1\"\ndialect",
            "dialect",
            13,
            "`[[models.deployments]]` has no `url`",
            "add `url = \"https://api",
        ),
        ("name = \"two\"\n", "", 22, "has no `name`", "add `name = "),
        ("keys = [{ env = \"KEY\" }]\n", "", 26, "`[[tenants]]` has no `keys`", "`keys = [{ env = \"TEAM_KEY\" }]`"),
        ("keys = [{ env = \"KEY\" }]", "keys = []", 28, "`keys` is empty", "`keys = [{ env = \"TEAM_KEY\" }]`"),
        ("models = [\"chat\"]", "models = []", 29, "`models` is empty", "`models = [\"*\"]`"),
        ("{ standard = 5 }", "{}", 18, "takes exactly one of `provisioned`, `standard`", "write one of"),
        ("{ env = \"UP\" }", "{ env = \"UP\", file = \"f\" }", 20, "takes exactly one of `env`", "write one of"),
        (
            "dialect = \"openai\"\nboundary = \"eu\"\ncapacity = { standard = 5 }\nweight = 1\ncredential = { env = \"UP\" }",
            "dialect = \"azure\"\nboundary = \"eu\"\ncapacity = { standard = 5 }\nweight = 1\ncredential = { entra = { tenant_id = \"t\", client_id = \"c\" } }",
            20,
            "has no `client_secret`",
            "client_secret = {",
        ),
    ]);
}

#[test]
fn values_of_the_wrong_type() {
    check(&[
        (
            "weight = 1",
            "weight = \"3\"",
            19,
            "`weight` is a text; it must be a whole number",
            "without quotes: `weight = 3`",
        ),
        ("weight = 1", "weight = 1.5", 19, "is a number with a fraction", "`weight = 1`"),
        ("weight = 1", "weight = 1979-05-27", 19, "is a date", "`weight = 1`"),
        (
            "patience = \"10s\"",
            "patience = 10",
            11,
            "`patience` is a whole number; it must be a text",
            "`patience = \"10s\"`",
        ),
        ("models = [\"chat\"]", "models = \"chat\"", 29, "it must be a list", "in brackets: `models = ["),
        ("models = [\"chat\"]", "models = [1]", 29, "`models[0]` is a whole number; it must be a text", ""),
        ("[server]", "[[server]]", 1, "`server` is a list; it must be a table", "`[server]`"),
        ("{ standard = 5 }", "5", 18, "`capacity` cannot be a whole number", "write one of `\"standard\"`"),
    ]);
}

#[test]
fn single_brackets_where_double_ones_belong() {
    let text = "[models]\nname = \"m\"\n[tenants]\nname = \"t\"\n";
    let errors = common::parse(text).expect_err("tables in place of lists");
    let remedies: Vec<_> = errors.problems().iter().map(|problem| problem.suggestion.as_deref()).collect();
    assert_eq!(
        remedies,
        [Some("write `[[models]]` in double brackets"), Some("write `[[tenants]]` in double brackets")]
    );
}

#[test]
fn values_that_are_none_of_the_choices() {
    check(&[
        ("\"priority\"", "\"prioritty\"", 8, "`policy` cannot be `prioritty`", "did you mean `\"priority\"`?"),
        (
            "\"priority\"",
            "\"fastest\"",
            8,
            "`policy` cannot be `fastest`",
            "the values are `\"priority\"`, `\"weighted\"`",
        ),
        ("policy = \"priority\"", "mode = \"observ\"", 8, "`mode` cannot be `observ`", "did you mean `\"observe\"`?"),
        (
            "models = [\"chat\"]",
            "mode = \"off\"",
            29,
            "`mode` cannot be `off`",
            "the values are `\"enforce\"`, `\"observe\"`",
        ),
        ("policy = \"priority\"", "mode = true", 8, "`mode` cannot be", "`\"enforce\"`"),
        ("\"openai\"", "\"bedrock\"", 16, "`dialect` cannot be `bedrock`", "`\"anthropic\"`"),
        ("{ standard = 5 }", "\"provisioned\"", 18, "`provisioned` without its size", "{ provisioned = 20 }"),
        ("{ standard = 5 }", "{ provisioned = 0 }", 18, "`provisioned` is 0; the least is 1", "from 1 to"),
        ("weight = 1", "weight = 0", 19, "`weight` is 0; the least is 1", "from 1 to 1000"),
        ("weight = 1", "weight = -1", 19, "`weight` is -1", "from 1 to 1000"),
        ("weight = 1", "weight = 9223372036854775807", 19, "the most is 1000", "from 1 to 1000"),
        ("patience = \"10s\"", "max_waiting = 1_000_001", 11, "the most is 1000000", "from 0 to 1000000"),
        ("[models.queue]\npatience = \"10s\"", "[models.retry]\nmax_attempts = 3", 11, "the most is 2", "from 1 to 2"),
        (
            "[models.queue]\npatience = \"10s\"",
            "[models.retry]\nbudget_percent = 101",
            11,
            "the most is 100",
            "from 0 to 100",
        ),
        ("[server]", "[server]\noverload_status = 500", 2, "`overload_status` cannot be 500", "429, 503, 529"),
        (
            "boundary = \"eu\"\n",
            "boundary = \"eu\"\nkind = \"zone\"\n",
            18,
            "`kind` cannot be `zone`",
            "`\"data-zone\"`",
        ),
    ]);
}

#[test]
fn texts_in_the_wrong_form() {
    check(&[
        ("patience = \"10s\"", "patience = \"10\"", 11, "a duration without a unit", "`10s`"),
        ("patience = \"10s\"", "patience = \"ten\"", 11, "is not a duration", "`10s`"),
        ("[server]", "[server]\nmax_body = \"64MBit\"", 2, "size in an unknown unit", "`64MiB`"),
        ("\"127.0.0.1:8080\"", "\"localhost:8080\"", 2, "`listen` is a host's name", "`127.0.0.1:8080`"),
        ("\"https://host/v1\"", "\"host/v1\"", 15, "does not begin with `http://`", "write the whole address"),
        ("\"https://host/v1\"", "\"ftp://host/v1\"", 15, "neither `http` nor `https`", "write the whole address"),
        ("\"https://host/v1\"", "\"https://host:0/v1\"", 15, "port is not a number", ":8000"),
        ("\"chat\"\naliases", "\"\"\naliases", 6, "`name` is empty", "write a name"),
        ("{ env = \"KEY\" }", "{ sha256 = \"abc\" }", 28, "is not a SHA-256", "sha256sum"),
        (
            "{ env = \"UP\" }",
            "{ env = \"MY-KEY\" }",
            20,
            "not the name of an environment variable",
            "put the secret into",
        ),
    ]);
}

#[test]
fn names_that_clash_or_do_not_exist() {
    check(&[
        (
            "models = [\"chat\"]",
            "models = [\"chatt\"]",
            29,
            "`search` may use `chatt`, which is no model",
            "did you mean `chat`?",
        ),
        ("models = [\"chat\"]", "models = [\"gemini\"]", 29, "which is no model of the file", "are `chat`, `talk`"),
        ("[\"talk\"]", "[\"chat\"]", 7, "`chat` already names `models[0]`", "rename or remove"),
        ("[\"talk\"]", "[\"*\"]", 7, "`*` cannot be an alias", "entry of its own"),
        ("name = \"two\"", "name = \"one\"", 23, "`one` already names `models[0].deployments[0]`", "a name of its own"),
        (
            "[[tenants]]\n",
            "[[tenants]]\nname = \"search\"\nkeys = [{ env = \"KEY_2\" }]\n\n[[tenants]]\n",
            31,
            "`search` already names `tenants[0]`",
            "a name of its own",
        ),
        (
            "[[tenants]]\n",
            "[[models]]\nname = \"talk\"\ndeployments = [{ name = \"x\", url = \"http://h\" }]\n\n[[tenants]]\n",
            27,
            "`talk` already names `models[0]`",
            "rename or remove",
        ),
    ]);
}

#[test]
fn keys_that_two_tenants_share() {
    let second = |key: &str| format!("[[tenants]]\nname = \"second\"\nkeys = [{key}]\n\n[[tenants]]\n");
    for key in ["{ env = \"KEY\" }", "{ env = \"KEY_AGAIN\" }"] {
        let (_, line, message, remedy) = one_error("[[tenants]]\n", &second(key));
        assert_eq!((line, message.as_str()), (32, "`keys[0]` is also a key of the tenant `second`"));
        assert!(remedy.contains("keys of its own"));
    }
    let text = GOOD.replacen("[[tenants]]\n", &second("{ env = \"KEY\" }"), 1);
    let errors = seawall_config::check_text(&text, "f", &Overrides::default()).expect_err("the same variable twice");
    assert_eq!(errors.problems().len(), 1, "{errors}");
    check(&[(
        "[{ env = \"KEY\" }]",
        "[{ env = \"KEY\" }, { env = \"KEY\" }]",
        28,
        "`keys[1]` is the same key as one before it",
        "keys of its own",
    )]);
}

#[test]
fn settings_that_exclude_each_other() {
    check(&[
        (
            "name = \"two\"\n",
            "name = \"two\"\ndialect = \"anthropic\"\n",
            24,
            "`anthropic` cannot serve the same model as `openai`",
            "does not translate",
        ),
        (
            "dialect = \"openai\"",
            "api_version = \"2024-10-21\"",
            16,
            "`api_version` means nothing",
            "dialect = \"azure\"",
        ),
        (
            "dialect = \"openai\"",
            "metrics_path = \"http://host/metrics\"",
            16,
            "is no path",
            "metrics_path = \"/metrics\"",
        ),
        ("{ env = \"UP\" }", "{ managed_identity = {} }", 20, "only work with Azure", "dialect = \"azure\""),
        (
            "boundary = \"eu\"\n",
            "boundary = \"eu\"\nkind = \"global\"\n",
            17,
            "cannot promise a `boundary`",
            "data-zone",
        ),
        (
            "boundary = \"eu\"\n",
            "",
            29,
            "the model `chat` stays inside the boundary `eu` of the tenant `search`",
            "promise: none",
        ),
        ("boundary = \"eu\"\n", "boundary = \"us\"\n", 30, "stays inside the boundary `eu`", "promise: `us`"),
        (
            "https://host/v1\"\ndialect = \"openai\"",
            "http://host/v1\"\nca_file = \"ca.pem\"",
            16,
            "means nothing for an `http://`",
            "https://",
        ),
        (
            "[server]",
            "[server]\nbuffered_bytes = \"1MiB\"",
            2,
            "less than `max_body` (64MiB)",
            "raise `buffered_bytes`",
        ),
        (
            "[models.queue]\npatience = \"10s\"",
            "[models.ejection]\nmax_time = \"1s\"",
            11,
            "shorter than `base_time` (10s)",
            "raise `max_time`",
        ),
        ("[server]", "[server]\nallow_anonymous = true", 2, "exclude each other", "remove"),
    ]);
}

#[test]
fn listeners_that_are_not_safe() {
    check(&[
        ("\"127.0.0.1:9090\"", "\"127.0.0.1:8080\"", 3, "are the same place", "another port"),
        (
            "\"127.0.0.1:9090\"",
            "\"0.0.0.0:9090\"",
            3,
            "reachable from other machines without a token",
            "admin_token_file",
        ),
    ]);
    let text = GOOD.replacen("127.0.0.1:8080", "0.0.0.0:8080", 1);
    common::parse(&text).unwrap_or_else(|errors| panic!("a key of one's own is enough: {errors}"));
    let errors = common::parse(&text.replace("\"KEY\"", "\"DEMO\"")).expect_err("a demo key");
    assert!(errors.problems()[0].message.starts_with("`keys[0]` is a demo key"), "{errors}");
}

#[test]
fn a_mistake_of_the_command_line_is_told_as_one() {
    let overrides = Overrides { admin: Some("0.0.0.0:9090".parse().expect("an address")), ..Overrides::default() };
    let errors = seawall_config::check_text(GOOD, "f", &overrides).expect_err("an open admin address");
    assert_eq!((errors.problems()[0].key.as_str(), errors.problems()[0].span.clone()), ("--admin", None));
}

#[test]
fn secrets_that_cannot_be_had() {
    check(&[
        (
            "{ env = \"UP\" }",
            "{ env = \"ABSENT\" }",
            20,
            "the environment variable `ABSENT` is not set",
            "export ABSENT=",
        ),
        (
            "{ env = \"UP\" }",
            "{ file = \"absent\" }",
            20,
            "the file `absent` cannot be read: it does not exist",
            "make the file readable",
        ),
        ("{ env = \"KEY\" }", "{ env = \"SPACED\" }", 28, "no header can carry", "on one line"),
        ("weight = 1", "ca_file = \"absent\"", 19, "the file `absent` cannot be read", "make the file readable"),
        ("weight = 1", "ca_file = \"no-ca.pem\"", 19, "holds no certificate", "in PEM"),
    ]);
}

#[test]
fn files_that_say_too_little() {
    let errors = common::parse("").expect_err("an empty file");
    let messages: Vec<_> = errors.problems().iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages, ["the file names no model", "the file names no tenant, so nobody could call"]);
    let text = "[server]\nallow_anonymous = true\nlisten = \"0.0.0.0:80\"\n\
                [[models]]\nname = \"m\"\ndeployments = [{ name = \"d\", url = \"http://h\" }]\n";
    let errors = common::parse(text).expect_err("open to all");
    assert_eq!(errors.position(&errors.problems()[0]), Some((3, 10)));
    assert!(errors.problems()[0].message.contains("would let other machines in without a key"));
}

#[test]
fn several_syntax_errors_and_others_are_told_together() {
    let text =
        GOOD.replace("weight = 1", "weight = ").replace("\"10s\"", "\"10\"").replace("[\"chat\"]", "[\"chatt\"]");
    let errors = common::parse(&text).expect_err("three mistakes");
    let lines: Vec<_> = errors.problems().iter().filter_map(|problem| errors.position(problem)).collect();
    assert_eq!(lines.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [11, 19, 29], "{errors}");
}

#[test]
fn a_key_that_stands_twice() {
    check(&[("weight = 1", "weight = 1\nweight = 2", 20, "duplicate key", "remove one of the two")]);
}

#[test]
fn a_file_full_of_mistakes_is_cut_short() {
    let unknown = (0..1000).fold(String::new(), |text, index| text + &format!("[models.y{index}]\n"));
    let text = format!("{GOOD}\n[server.x]\n{unknown}");
    let errors = common::parse(&text).expect_err("a thousand unknown sections");
    assert_eq!(errors.problems().len(), 200);
    assert!(errors.render(false).ends_with("seawall.toml: 1001 errors, the first 200 are shown\n"), "{errors}");
}

#[test]
fn below_a_broken_header_nothing_is_guessed() {
    let errors = common::parse(&GOOD.replace("[[tenants]]", "[[tenants]")).expect_err("a broken header");
    assert!(errors.problems().iter().all(|problem| problem.key.is_empty()), "{errors}");
    assert_eq!(errors.position(&errors.problems()[0]).map(|(line, _)| line), Some(26), "{errors}");
}

/// Two models that list the other one, and one that lists what it must not.
const FALLBACKS: &str = r#"[[models]]
name = "a"
fallback = ["b"]
[[models.deployments]]
name = "a1"
url = "https://host/v1"

[[models]]
name = "b"
aliases = ["bb"]
fallback = []
[[models.deployments]]
name = "b1"
url = "https://host/v1"

[[models]]
name = "c"
fallback = ["a"]
[[models.deployments]]
name = "c1"
url = "https://host/v1"

[[models]]
name = "claude"
[[models.deployments]]
name = "d1"
url = "https://host"
dialect = "anthropic"

[[models]]
name = "*"
[[models.deployments]]
name = "e1"
url = "https://host/v1"

[[tenants]]
name = "t"
keys = [{ env = "KEY" }]
models = ["*"]
"#;

/// F11: what the file says cannot send a request round in a circle.
#[test]
fn f11_fallbacks_that_cannot_be_walked() {
    common::parse(FALLBACKS).unwrap_or_else(|errors| panic!("{errors}"));
    for (to, line, message, remedy) in [
        (r#"["bee"]"#, 3, "`bee` is no model of the file", "the models of the file are"),
        (r#"["a"]"#, 3, "`a` cannot fall back to itself", "remove it"),
        (r#"["b", "bb"]"#, 3, "`bb` is in the list already", "visited once"),
        (r#"["claude"]"#, 3, "speaks another API", "does not translate"),
        (r#"["*"]"#, 3, "`*` cannot be a fallback", "name a model"),
        (r#"["c"]"#, 18, "the fallbacks go in a circle: `c` -> `a` -> `c`", "visits each model once"),
    ] {
        let text = FALLBACKS.replacen(r#"["b"]"#, to, 1);
        // The list for requests that are too long is bound by the same rules.
        for text in [text.clone(), text.replace("fallback = ", "context_fallback = ")] {
            let errors = common::parse(&text).expect_err(to);
            assert_eq!(errors.problems().len(), 1, "{to}\n{errors}");
            let problem = &errors.problems()[0];
            assert!(problem.message.contains(message), "{}", problem.message);
            assert!(problem.suggestion.as_ref().is_some_and(|found| found.contains(remedy)), "{errors}");
            assert_eq!(errors.position(problem).map(|(line, _)| line), Some(line), "{errors}");
        }
    }
    let longer = FALLBACKS.replacen("fallback = []", "fallback = [\"c\"]", 1);
    let errors = common::parse(&longer).expect_err("a circle of three");
    assert_eq!(errors.problems().len(), 1, "{errors}");
    assert!(errors.to_string().contains("`c` -> `a` -> `b` -> `c`"), "{errors}");
}
