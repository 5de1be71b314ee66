//! What an inference request asks for: the operation from its path, the rest from its body.

use seawall_model::engine::Prefix;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::RangeInclusive;

/// Whose form errors and answers take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dialect {
    OpenAi,
    Azure,
    Anthropic,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Operation {
    Chat,
    Completions,
    Responses,
    Embeddings,
    Messages,
    CountTokens,
    Models,
}

impl Operation {
    /// The name that stands for the path in fingerprints: the same for every dialect and deployment.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat/completions",
            Self::Completions => "completions",
            Self::Responses => "responses",
            Self::Embeddings => "embeddings",
            Self::Messages => "messages",
            Self::CountTokens => "messages/count_tokens",
            Self::Models => "models",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        [
            Self::Chat,
            Self::Completions,
            Self::Responses,
            Self::Embeddings,
            Self::Messages,
            Self::CountTokens,
            Self::Models,
        ]
        .into_iter()
        .find(|operation| operation.name() == name)
    }
}

/// A path of the inference API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Route {
    pub(super) dialect: Dialect,
    pub(super) operation: Operation,
    /// Azure's deployment, or the model of `/v1/models/{model}`.
    pub(super) name: Option<String>,
}

impl Route {
    /// Reads a path; `None` where no API has it.
    pub(super) fn of(path: &str) -> Option<Self> {
        let (dialect, rest) = if let Some(rest) = path.strip_prefix("/openai/deployments/") {
            let (deployment, rest) = rest.split_once('/')?;
            let operation = Operation::by_name(rest)?;
            let allowed = matches!(operation, Operation::Chat | Operation::Completions | Operation::Embeddings);
            let name = Some(deployment.to_owned());
            return allowed.then_some(Self { dialect: Dialect::Azure, operation, name });
        } else if let Some(rest) = path.strip_prefix("/openai/v1/").or_else(|| path.strip_prefix("/openai/")) {
            (Dialect::Azure, rest)
        } else {
            (Dialect::OpenAi, path.strip_prefix("/v1/")?)
        };
        if let Some(model) = rest.strip_prefix("models/") {
            return Some(Self { dialect, operation: Operation::Models, name: Some(model.to_owned()) });
        }
        let operation = Operation::by_name(rest)?;
        let anthropic = matches!(operation, Operation::Messages | Operation::CountTokens);
        let dialect = if anthropic { Dialect::Anthropic } else { dialect };
        Some(Self { dialect, operation, name: None })
    }
}

/// The members of the bodies that matter here; all others are accepted as they are.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    stream: Option<bool>,
    #[serde(borrow)]
    stream_options: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    max_output_tokens: Option<u32>,
    n: Option<u32>,
    dimensions: Option<u32>,
    encoding_format: Option<String>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// A request, read.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) dialect: Dialect,
    pub(super) operation: Operation,
    pub(super) model: String,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) prompt_tokens: u32,
    pub(super) output_tokens: u32,
    /// The length that the request allows cut the answer.
    pub(super) cut: bool,
    pub(super) choices: u32,
    pub(super) inputs: u32,
    pub(super) dimensions: u32,
    pub(super) base64: bool,
    /// Hash of operation and body without the model's name.
    pub(super) content: u64,
    pub(super) prefix: Option<Prefix>,
}

/// What is wrong with a body: a sentence for the caller, and the member it is about.
pub(super) type Wrong = (String, Option<&'static str>);

/// What a server adds to the reading of a request.
pub(super) struct Draw<'a> {
    pub(super) seed: u64,
    pub(super) output_tokens: &'a RangeInclusive<u32>,
    pub(super) dimensions: u32,
}

/// The most choices of a request, and the most inputs of an embedding.
const MAX_CHOICES: u32 = 16;
const MAX_INPUTS: usize = 2048;
const MAX_DIMENSIONS: u32 = 8192;

/// Hash of operation and body, the value of the top-level `model` left out: a router may replace that on a retry.
pub(super) fn fingerprint(operation: Operation, body: &[u8]) -> u64 {
    #[derive(Deserialize)]
    struct OnlyModel<'a> {
        #[serde(borrow)]
        model: Option<&'a RawValue>,
    }
    let span = serde_json::from_slice::<OnlyModel<'_>>(body).ok().and_then(|only| only.model).and_then(|model| {
        let start = (model.get().as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
        Some(start..start + model.get().len())
    });
    let mut hasher = blake3::Hasher::new();
    hasher.update(operation.name().as_bytes());
    match span.filter(|span| span.end <= body.len()) {
        Some(span) => hasher.update(&body[..span.start]).update(&body[span.end..]),
        None => hasher.update(body),
    };
    first_eight(hasher.finalize().as_bytes())
}

/// A number drawn from a seed and two more numbers, the same on every machine.
pub(super) fn draw(seed: u64, content: u64, index: u64) -> u64 {
    let mut mixed = seed ^ content.rotate_left(23) ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for multiplier in [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB] {
        mixed = (mixed ^ (mixed >> 31)).wrapping_mul(multiplier);
    }
    mixed ^ (mixed >> 29)
}

impl Ask {
    /// Reads a body for a route.
    pub(super) fn read(route: &Route, body: &[u8], content: u64, draw_from: &Draw<'_>) -> Result<Self, Wrong> {
        let fields: Fields<'_> = serde_json::from_slice(body)
            .map_err(|error| (format!("We could not parse the JSON body of your request: {error}."), None))?;
        let operation = route.operation;
        let named = fields.model.and_then(|model| serde_json::from_str::<String>(model.get()).ok());
        let Some(model) = named.or_else(|| route.name.clone()) else {
            return Err(("you must provide a model parameter, as a string".to_owned(), Some("model")));
        };
        let text = fields.text(operation)?;
        let limit = fields.max_completion_tokens.or(fields.max_output_tokens).or(fields.max_tokens);
        if operation == Operation::Messages && limit.is_none() {
            return Err(("max_tokens: Field required".to_owned(), Some("max_tokens")));
        }
        let (output_tokens, cut) = output_length(operation, content, limit, draw_from);
        let choices = fields.n.unwrap_or(1);
        if choices == 0 || choices > MAX_CHOICES {
            return Err((format!("n must lie between 1 and {MAX_CHOICES}"), Some("n")));
        }
        let dimensions = fields.dimensions.unwrap_or(draw_from.dimensions);
        if dimensions == 0 || dimensions > MAX_DIMENSIONS {
            return Err((format!("dimensions must lie between 1 and {MAX_DIMENSIONS}"), Some("dimensions")));
        }
        let include_usage = fields
            .stream_options
            .and_then(|options| serde_json::from_str::<StreamOptions>(options.get()).ok())
            .and_then(|options| options.include_usage);
        Ok(Self {
            dialect: route.dialect,
            operation,
            model,
            stream: fields.stream.unwrap_or(false)
                && !matches!(operation, Operation::Embeddings | Operation::CountTokens),
            include_usage: include_usage.unwrap_or(false),
            prompt_tokens: tokens_of(text.len() + fields.leading().map_or(0, str::len)),
            output_tokens,
            cut,
            choices,
            inputs: if operation == Operation::Embeddings { inputs(text)? } else { 1 },
            dimensions,
            base64: fields.encoding_format.as_deref() == Some("base64"),
            content,
            prefix: fields.prefix(),
        })
    }
}

impl<'a> Fields<'a> {
    fn text(&self, operation: Operation) -> Result<&'a str, Wrong> {
        let (value, name) = match operation {
            Operation::Chat | Operation::Messages | Operation::CountTokens => (self.messages, "messages"),
            Operation::Completions => (self.prompt, "prompt"),
            Operation::Responses | Operation::Embeddings | Operation::Models => (self.input, "input"),
        };
        let text =
            value.map(RawValue::get).ok_or_else(|| (format!("Missing required parameter: '{name}'."), Some(name)))?;
        if name == "messages" && !text.starts_with('[') {
            return Err((format!("Invalid type for '{name}': expected an array of objects."), Some(name)));
        }
        Ok(text)
    }

    fn leading(&self) -> Option<&'a str> {
        self.system.or(self.instructions).map(RawValue::get)
    }

    /// The beginning that other requests may share: the system prompt, or the first of several messages.
    fn prefix(&self) -> Option<Prefix> {
        let text = self.leading().or_else(|| {
            let messages: Vec<&'a RawValue> = serde_json::from_str(self.messages?.get()).ok()?;
            if messages.len() < 2 { None } else { messages.first().map(|message| message.get()) }
        })?;
        Some(Prefix { hash: first_eight(blake3::hash(text.as_bytes()).as_bytes()), tokens: tokens_of(text.len()) })
    }
}

fn first_eight(hash: &[u8; 32]) -> u64 {
    hash.first_chunk::<8>().map_or(0, |first| u64::from_le_bytes(*first))
}

/// About four bytes make a token.
fn tokens_of(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX).max(1)
}

/// The length drawn for this content, cut by what the request allows.
fn output_length(operation: Operation, content: u64, limit: Option<u32>, from: &Draw<'_>) -> (u32, bool) {
    if matches!(operation, Operation::Embeddings | Operation::CountTokens | Operation::Models) {
        return (0, false);
    }
    let (least, most) = (*from.output_tokens.start(), *from.output_tokens.end());
    let span = u64::from(most.saturating_sub(least)) + 1;
    let drawn = least + u32::try_from(draw(from.seed, content, 0) % span).unwrap_or(0);
    match limit {
        Some(limit) if limit < drawn => (limit.max(1), true),
        _ => (drawn.max(1), false),
    }
}

fn inputs(text: &str) -> Result<u32, Wrong> {
    if !text.starts_with('[') {
        return Ok(1);
    }
    let entries: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|error| (format!("input is no array: {error}"), Some("input")))?;
    let of_numbers = entries.first().is_some_and(|entry| !entry.get().starts_with(['"', '[']));
    if entries.is_empty() || (!of_numbers && entries.len() > MAX_INPUTS) {
        return Err((format!("input must have between 1 and {MAX_INPUTS} entries"), Some("input")));
    }
    Ok(if of_numbers { 1 } else { u32::try_from(entries.len()).unwrap_or(1) })
}
