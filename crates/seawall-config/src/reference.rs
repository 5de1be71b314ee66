//! The reference page, made from the schema and so from the comments of the raw types.

use crate::schema::schema;
use seawall_document::reference;

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
    reference::markdown(schema(), HEAD, &SECTIONS)
}
