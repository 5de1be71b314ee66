//! Where secrets come from. There is no form that holds a secret itself.

use schemars::JsonSchema;
use serde::Deserialize;

/// How Seawall identifies itself at a deployment. The file names where the secret is, never the secret.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline, extend("x-secret" = "{ env = \"OPENAI_API_KEY\" }"))]
pub(crate) enum Credential {
    /// A key in that environment variable, for example `{ env = "OPENAI_API_KEY" }`.
    Env(#[schemars(extend("format" = "environment-variable"))] String),
    /// A key in that file, for example `{ file = "/run/secrets/openai-key" }`.
    File(#[schemars(extend("format" = "path"))] String),
    /// Azure only: Microsoft Entra ID, the flow of client credentials.
    Entra(Entra),
    /// Azure only: the managed identity of the machine that Seawall runs on; `{ managed_identity = {} }` takes the
    /// machine's own.
    ManagedIdentity(ManagedIdentity),
}

/// An application that is registered with Microsoft Entra ID.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct Entra {
    /// The directory's id or domain.
    #[schemars(required, extend("format" = "path-part"), example = &"contoso.onmicrosoft.com")]
    pub(crate) tenant_id: Option<String>,
    /// The application's id.
    #[schemars(required, extend("format" = "path-part"), example = &"11111111-2222-3333-4444-555555555555")]
    pub(crate) client_id: Option<String>,
    /// The application's secret: `{ env = "NAME" }` or `{ file = "PATH" }`.
    #[schemars(required)]
    pub(crate) client_secret: Option<SecretSource>,
    /// Who gives the tokens; another one for national clouds.
    #[serde(default = "default_authority")]
    #[schemars(extend("format" = "url"))]
    pub(crate) authority: String,
}

fn default_authority() -> String {
    "https://login.microsoftonline.com".to_owned()
}

/// The managed identity of the machine.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct ManagedIdentity {
    /// A user-assigned identity; if it is not set, the machine's own.
    #[schemars(extend("format" = "path-part"))]
    pub(crate) client_id: Option<String>,
}

/// Where a secret is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline, extend("x-secret" = "{ env = \"AZURE_CLIENT_SECRET\" }"))]
pub(crate) enum SecretSource {
    /// In that environment variable.
    Env(#[schemars(extend("format" = "environment-variable"))] String),
    /// In that file.
    File(#[schemars(extend("format" = "path"))] String),
}

/// A key that a tenant's clients present.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline, extend("x-secret" = "{ env = \"TEAM_KEY\" }"))]
pub(crate) enum KeySource {
    /// The key is in that environment variable.
    Env(#[schemars(extend("format" = "environment-variable"))] String),
    /// The key is in that file.
    File(#[schemars(extend("format" = "path"))] String),
    /// The key's SHA-256 in hexadecimal digits: `printf %s "$KEY" | sha256sum`.
    Sha256(#[schemars(extend("format" = "sha256"))] String),
}
