//! Weighted mixes as the command line writes them: `small:80,medium:15,large:5`.

use super::error::LoadError;
use seawall_model::profile::Profile;
use secrecy::{ExposeSecret, SecretString};
use std::fmt;
use std::str::FromStr;

/// Something that a mix may hold, in the form the command line writes it.
pub trait MixItem: Sized {
    /// The option, for errors.
    const OPTION: &'static str;
    /// An example of a whole mix, for errors.
    const EXAMPLE: &'static str;
    /// Whether an entry's own text may hold a colon. Then a tail that is no number belongs to the text.
    const MAY_HOLD_COLONS: bool;
    /// Whether errors must not repeat the text.
    const SECRET: bool = false;

    /// Reads one entry without its weight. The error says what is wrong and what would be right.
    fn parse_item(text: &str) -> Result<Self, String>;
}

/// Entries with whole weights. Parsed from `ENTRY[:WEIGHT],...`; a weight that is left out is 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix<T> {
    entries: Vec<(T, u32)>,
    total: u64,
}

impl<T> Mix<T> {
    /// A mix of one entry.
    pub fn one(item: T) -> Self {
        Self { entries: vec![(item, 1)], total: 1 }
    }

    /// The entries with their weights.
    pub fn entries(&self) -> &[(T, u32)] {
        &self.entries
    }

    /// The entry at `index`, as [`Mix::pick`] gave it.
    pub(super) fn item(&self, index: usize) -> &T {
        &self.entries[index].0
    }

    /// The index of the entry that a uniform `draw` falls on.
    pub(super) fn pick(&self, draw: u64) -> usize {
        let product = u128::from(draw) * u128::from(self.total);
        let mut left = u64::try_from(product >> 64).expect("the high half fits");
        for (index, (_, weight)) in self.entries.iter().enumerate() {
            match left.checked_sub(u64::from(*weight)) {
                None => return index,
                Some(rest) => left = rest,
            }
        }
        self.entries.len() - 1
    }
}

impl<T: MixItem> FromStr for Mix<T> {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        let mut entries = Vec::new();
        for (index, entry) in text.split(',').map(str::trim).enumerate() {
            let shown = if T::SECRET { format!("entry {}", index + 1) } else { format!("`{entry}`") };
            if entry.is_empty() {
                return Err(wrong::<T>(format!("entry {} is empty", index + 1)));
            }
            let (item, weight) = split_weight::<T>(entry, &shown)?;
            let item = T::parse_item(item).map_err(|problem| wrong::<T>(format!("in {shown}: {problem}")))?;
            entries.push((item, weight));
        }
        let total = entries.iter().map(|(_, weight)| u64::from(*weight)).sum();
        Ok(Self { entries, total })
    }
}

fn wrong<T: MixItem>(problem: String) -> LoadError {
    LoadError::invalid(T::OPTION, problem, format!("write entries with weights, such as `{}`", T::EXAMPLE))
}

fn split_weight<'a, T: MixItem>(entry: &'a str, shown: &str) -> Result<(&'a str, u32), LoadError> {
    let Some((item, weight)) = entry.rsplit_once(':') else {
        return Ok((entry, 1));
    };
    match weight.parse() {
        Ok(0) => Err(wrong::<T>(format!("the weight of {shown} is 0, so it would never be sent"))),
        Ok(weight) => Ok((item, weight)),
        Err(_) if T::MAY_HOLD_COLONS => Ok((entry, 1)),
        Err(_) => Err(wrong::<T>(format!("the weight `{weight}` of {shown} is not a whole number from 1 on"))),
    }
}

/// The size of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Size {
    /// Its name in the mix.
    pub name: String,
    /// Words of the prompt, about a token each.
    pub prompt_tokens: u32,
    /// The most tokens the answer may have.
    pub max_tokens: u32,
}

impl Size {
    /// The sizes that have a name: name, prompt tokens, most tokens of the answer.
    pub const NAMED: [(&'static str, u32, u32); 3] =
        [("small", 200, 100), ("medium", 2_000, 300), ("large", 12_000, 800)];
    /// The largest prompt.
    pub const MAX_PROMPT_TOKENS: u32 = 1_000_000;
}

impl MixItem for Size {
    const OPTION: &'static str = "sizes";
    const EXAMPLE: &'static str = "small:80,medium:15,large:5` or `512/128:10,4000/500:1";
    const MAY_HOLD_COLONS: bool = false;

    fn parse_item(text: &str) -> Result<Self, String> {
        if let Some((name, prompt_tokens, max_tokens)) = Self::NAMED.into_iter().find(|(name, ..)| *name == text) {
            return Ok(Self { name: name.to_owned(), prompt_tokens, max_tokens });
        }
        let own = text.split_once('/').and_then(|(prompt, max)| Some((prompt.parse().ok()?, max.parse().ok()?)));
        let Some((prompt_tokens, max_tokens)) = own else {
            return Err(format!("`{text}` is neither small, medium, large nor PROMPT_TOKENS/MAX_TOKENS"));
        };
        if prompt_tokens == 0 || max_tokens == 0 || prompt_tokens > Self::MAX_PROMPT_TOKENS {
            return Err(format!("a prompt has 1 to {} tokens and an answer at least 1", Self::MAX_PROMPT_TOKENS));
        }
        Ok(Self { name: text.to_owned(), prompt_tokens, max_tokens })
    }
}

/// The name of a model. In a mix, a tail `:NUMBER` is its weight and any other colon is part of the name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Model(pub String);

impl MixItem for Model {
    const OPTION: &'static str = "models";
    const EXAMPLE: &'static str = "demo-chat:3,other-model:1";
    const MAY_HOLD_COLONS: bool = true;

    fn parse_item(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("the model has no name".to_owned()) } else { Ok(Self(text.to_owned())) }
    }
}

/// A caller: the key that it sends, and the name by which the report calls it. The key is never printed.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// Name in the report.
    pub name: String,
    /// Sent as `authorization: Bearer`, and as `x-api-key` on the Messages endpoint.
    pub key: SecretString,
}

impl Tenant {
    pub(super) fn key_can_be_sent(&self) -> bool {
        self.key.expose_secret().bytes().all(|byte| (0x21..0x7f).contains(&byte))
    }
}

impl MixItem for Tenant {
    const OPTION: &'static str = "tenants";
    const EXAMPLE: &'static str = "demo=demo-key:9,batch=demo-batch-key:1";
    const MAY_HOLD_COLONS: bool = true;
    const SECRET: bool = true;

    /// `NAME=KEY`. A key must have a name, so that a report can speak of it.
    fn parse_item(text: &str) -> Result<Self, String> {
        // The text itself stays out of the messages: it may be a key.
        let Some((name, key)) = text.split_once('=') else {
            return Err("a tenant is written NAME=KEY".to_owned());
        };
        if name.is_empty() || key.is_empty() {
            return Err("a tenant needs both a name and a key".to_owned());
        }
        let tenant = Self { name: name.to_owned(), key: SecretString::from(key) };
        if tenant.key_can_be_sent() { Ok(tenant) } else { Err("a key has only visible ASCII characters".to_owned()) }
    }
}

/// A retry profile, by its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Client(pub &'static Profile);

impl MixItem for Client {
    const OPTION: &'static str = "profiles";
    const EXAMPLE: &'static str = "openai-python:50,immediate:20,none:30";
    const MAY_HOLD_COLONS: bool = false;

    fn parse_item(text: &str) -> Result<Self, String> {
        Profile::by_name(text).map(Self).ok_or_else(|| {
            let known: Vec<_> = Profile::ALL.iter().map(|profile| profile.name).collect();
            format!("there is no client `{text}`; the clients are {}", known.join(", "))
        })
    }
}

impl fmt::Display for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<T: MixItem + fmt::Debug>(text: &str) -> String {
        text.parse::<Mix<T>>().expect_err("the text is wrong").to_string()
    }

    #[test]
    fn mixes_are_read_with_their_weights() {
        let sizes: Mix<Size> = "small:80, 512/64:15,large".parse().unwrap();
        let found: Vec<_> = sizes.entries().iter().map(|(size, weight)| (size.prompt_tokens, *weight)).collect();
        assert_eq!(found, [(200, 80), (512, 15), (12_000, 1)]);
        let models: Mix<Model> = "llama3:8b,llama3:8b:4,other:2".parse().unwrap();
        let found: Vec<_> = models.entries().iter().map(|(model, weight)| (model.0.as_str(), *weight)).collect();
        assert_eq!(found, [("llama3:8b", 1), ("llama3:8b", 4), ("other", 2)]);
        let tenants: Mix<Tenant> = "a=k=1:x:3".parse().unwrap();
        assert_eq!(tenants.item(0).key.expose_secret(), "k=1:x");
    }

    #[test]
    fn errors_name_the_entry_and_the_remedy_and_never_a_key() {
        assert_eq!(
            error::<Size>("small:eighty"),
            "sizes: the weight `eighty` of `small:eighty` is not a whole number from 1 on; write entries with weights, \
             such as `small:80,medium:15,large:5` or `512/128:10,4000/500:1`"
        );
        assert!(error::<Size>("tiny").contains("`tiny` is neither small, medium, large nor PROMPT_TOKENS/MAX_TOKENS"));
        assert!(error::<Size>("0/5").contains("1 to 1000000 tokens"));
        assert!(error::<Client>("openai-pyton:3").contains("the clients are openai-python, openai-node"));
        assert!(error::<Client>("none:0").contains("would never be sent"));
        assert!(error::<Model>("a,,b").contains("entry 2 is empty"));
        for text in ["a=good,topsecret", "a=good,topsecret:0", "=topsecret", "a=topsecret\n1"] {
            let message = error::<Tenant>(text);
            assert!(!message.contains("topsecret") && message.contains("tenants: "), "{message}");
        }
    }

    #[test]
    fn a_draw_falls_on_an_entry_in_proportion() {
        let mix: Mix<Size> = "small:1,medium:3".parse().unwrap();
        assert_eq!((mix.pick(0), mix.pick(u64::MAX / 4 - 1), mix.pick(u64::MAX / 4 + 2)), (0, 0, 1));
        assert_eq!(mix.pick(u64::MAX), 1);
    }
}
