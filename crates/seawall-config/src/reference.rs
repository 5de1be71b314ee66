//! The reference page, made from the schema and so from the comments of the raw types.

use crate::schema::{Choice, resolved, schema};
use serde_json::Value as Json;
use std::fmt::Write as _;

const HEAD: &str = "# Configuration reference\n\n\
<!-- Generated from the types of `seawall-config`; change their comments and run `cargo xtask generate`. -->\n\n\
A config file is written in [TOML](https://toml.io). `seawall check --config FILE` tells everything that is wrong with \
one; an unknown key is an error.\n\n\
Examples, each of which a test loads:\n\n\
* `examples/minimal.toml`: one model, one deployment, one tenant.\n\
* `examples/openai-and-azure.toml`: one model from two providers, and a key that is being replaced.\n\
* `examples/azure-provisioned-spillover.toml`: reserved capacity first, spill-over, and a residency boundary.\n\
* `examples/vllm-fleet.toml`: machines of one's own, one of them behind a private CA.\n\
* `examples/anthropic.toml`: Anthropic's API with every model under its own name.\n\n\
For completion in an editor, put this \
line at the top of a file:\n\n\
```toml\n#:schema ./docs/reference/config.schema.json\n```\n\n\
Durations are whole numbers with a unit (`250ms`, `10s`, `2m`, `1h`), sizes as well (`512KiB`, `64MiB`, `2GiB`). \
A secret is never written into the file: the file names an environment variable or another file.\n";

/// The sections in the order of the page: header, and where its schema is.
const SECTIONS: [(&str, &str); 8] = [
    ("[server]", "Server"),
    ("[[models]]", "Model"),
    ("[models.queue]", "Queue"),
    ("[models.retry]", "Retry"),
    ("[models.ejection]", "Ejection"),
    ("[models.timeouts]", "Timeouts"),
    ("[[models.deployments]]", "Deployment"),
    ("[[tenants]]", "Tenant"),
];

/// The reference page of the config file, in Markdown; a generated file of the documentation.
pub fn reference_markdown() -> String {
    let mut page = HEAD.to_owned();
    for (header, name) in SECTIONS {
        section(&mut page, header, &schema()["$defs"][name]);
    }
    page
}

fn section(page: &mut String, header: &str, schema: &'static Json) {
    push(page, format_args!("\n## `{header}`\n\n{}\n", text(schema)));
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let required = schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
        key(page, name, property, required, "###");
    }
}

fn key(page: &mut String, name: &str, property: &'static Json, required: bool, level: &str) {
    let target = resolved(property);
    let choice = Choice::of(target);
    push(page, format_args!("\n{level} `{name}`\n\n{}\n\n", text(property)));
    push(page, format_args!("* Type: {}\n", type_name(property, choice.as_ref())));
    let default = match &property["default"] {
        Json::Null if required => "none, it must be set".to_owned(),
        Json::Null if is_section(property) => "each key's own".to_owned(),
        Json::Null => "not set".to_owned(),
        value => format!("`{value}`"),
    };
    push(page, format_args!("* Default: {default}\n"));
    if let Some(example) = property["examples"].get(0) {
        push(page, format_args!("* Example: `{name} = {example}`\n"));
    }
    let item_choice = Choice::of(&property["items"]);
    for choice in choice.iter().chain(&item_choice) {
        choices(page, choice);
    }
}

fn choices(page: &mut String, choice: &Choice) {
    for (word, meaning) in choice.words.iter().filter(|(_, meaning)| !meaning.is_empty()) {
        push(page, format_args!("* `\"{word}\"`: {meaning}\n"));
    }
    for (tag, meaning, value) in &choice.tags {
        push(page, format_args!("* `{{ {tag} = ... }}`: {meaning}\n"));
        for (name, inner) in value["properties"].as_object().into_iter().flatten() {
            let default = match &inner["default"] {
                Json::Null => String::new(),
                value => format!(" Default `{value}`."),
            };
            push(page, format_args!("  * `{name}`: {}{default}\n", text(inner)));
        }
    }
}

fn is_section(property: &Json) -> bool {
    property.get("$ref").is_some()
}

fn text(schema: &Json) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

fn type_name(property: &'static Json, choice: Option<&Choice>) -> String {
    if let Some(choice) = choice {
        return format!("one of {}", choice.list());
    }
    if is_section(property) {
        return "a section of its own, below".to_owned();
    }
    match property["type"].as_str().unwrap_or_default() {
        "integer" => match (property["enum"].as_array(), property["minimum"].as_u64(), property["maximum"].as_u64()) {
            (Some(values), _, _) => {
                format!("one of {}", values.iter().map(Json::to_string).collect::<Vec<_>>().join(", "))
            }
            (None, Some(least), Some(most)) => format!("whole number from {least} to {most}"),
            _ => "whole number".to_owned(),
        },
        "boolean" => "`true` or `false`".to_owned(),
        "array" if is_section(&property["items"]) => "list of sections, below".to_owned(),
        "array" if Choice::of(&property["items"]).is_some() => "list of tables".to_owned(),
        "array" => "list of texts".to_owned(),
        _ => text_type(property["format"].as_str().unwrap_or_default()).to_owned(),
    }
}

fn text_type(format: &str) -> &'static str {
    match format {
        "duration" => "duration, not zero",
        "duration-or-zero" => "duration, zero allowed",
        "size" => "size",
        "socket-address" => "IP address and port",
        "url" => "url",
        "path" => "path",
        _ => "text",
    }
}

fn push(page: &mut String, part: std::fmt::Arguments<'_>) {
    page.write_fmt(part).expect("writing to a string does not fail");
}
