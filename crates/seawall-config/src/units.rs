//! Values of a config file that are written as text: addresses, urls, names of environment variables, digests. Those
//! that every document can use, such as durations, are in `seawall-document`.

use crate::endpoint::{Endpoint, UrlError};
use seawall_document::formats::{Format, FormatError};
use seawall_document::{looks_secret, text_value};
use std::fmt;
use std::net::SocketAddr;

pub(crate) use seawall_document::formats::{DurationOrZero, DurationText, SizeText};

/// The formats of a config file's texts, beside the common ones.
pub(crate) const FORMATS: &[Format] = &[
    Format {
        name: "socket-address",
        shown: "IP address and port",
        example: "127.0.0.1:8080",
        test: |text| address(text).map(drop),
    },
    Format {
        name: "url",
        shown: "url",
        example: "https://api.openai.com/v1",
        test: |text| Endpoint::parse(text).map(drop).map_err(url_fault),
    },
    Format { name: "environment-variable", shown: "text", example: "OPENAI_API_KEY", test: environment_variable },
    Format { name: "sha256", shown: "text", example: "...", test: |text| sha256(text).map(drop) },
    Format { name: "path-part", shown: "text", example: "...", test: path_part },
];

fn address(text: &str) -> Result<SocketAddr, FormatError> {
    const REMEDY: &str = "write an address and a port, for example `127.0.0.1:8080` or `[::1]:8080`";
    text.parse().map_err(|_| {
        let is_name = text.contains(|character: char| character.is_ascii_alphabetic()) && !text.contains("::");
        FormatError::new(
            if is_name {
                "is a host's name, not an IP address with a port"
            } else {
                "is not an IP address with a port"
            },
            REMEDY,
        )
    })
}

fn url_fault(error: UrlError) -> FormatError {
    FormatError {
        fault: format!("is not usable: {error}"),
        remedy: error.remedy().to_owned(),
        secret: matches!(error, UrlError::Credentials | UrlError::Query | UrlError::Malformed),
    }
}

fn environment_variable(text: &str) -> Result<(), FormatError> {
    let well_formed = !text.is_empty()
        && !text.starts_with(|character: char| character.is_ascii_digit())
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if well_formed && !looks_secret(text) {
        return Ok(());
    }
    Err(FormatError {
        fault: "is not the name of an environment variable".to_owned(),
        remedy: "write the variable's name here and put the secret into the variable, for example \
                 `{ env = \"OPENAI_API_KEY\" }`"
            .to_owned(),
        secret: true,
    })
}

/// The digest behind 64 hexadecimal digits.
pub(crate) fn sha256(text: &str) -> Result<[u8; 32], FormatError> {
    let error = || FormatError {
        fault: "is not a SHA-256 in 64 hexadecimal digits".to_owned(),
        remedy: "print it with `printf %s \"$KEY\" | sha256sum`".to_owned(),
        secret: true,
    };
    let digits: Vec<u8> =
        text.chars().map_while(|digit| digit.to_digit(16)).filter_map(|digit| u8::try_from(digit).ok()).collect();
    if digits.len() != 64 || text.chars().count() != 64 {
        return Err(error());
    }
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] * 16 + pair[1]).collect();
    bytes.try_into().map_err(|_| error())
}

fn path_part(text: &str) -> Result<(), FormatError> {
    let allowed = |character: char| character.is_ascii_alphanumeric() || ".-_".contains(character);
    if text.is_empty() || !text.chars().all(allowed) {
        return Err(FormatError::new(
            "holds other characters than letters, digits, `.`, `-` and `_`",
            "copy it from the provider's portal",
        ));
    }
    Ok(())
}

text_value!(
    /// An IP address with a port.
    pub(crate) AddressText(SocketAddr), "socket-address", address, None);

impl fmt::Display for AddressText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_refuses_with_its_own_words() {
        for (format, text, part) in [
            ("socket-address", "localhost:8080", "host's name"),
            ("socket-address", ":8080", "is not an IP address"),
            ("url", "host", "does not begin with"),
            ("environment-variable", "MY KEY", "environment variable"),
            ("environment-variable", "a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3", "environment variable"),
            ("sha256", "abc", "64 hexadecimal"),
            ("path-part", "2024/06", "other characters"),
        ] {
            let format = FORMATS.iter().find(|known| known.name == format).expect("a format of config files");
            let error = (format.test)(text).expect_err(text);
            assert!(error.fault.contains(part), "{} {text}: {}", format.name, error.fault);
            assert!(!error.remedy.is_empty());
        }
    }

    #[test]
    fn a_digest_is_read_in_either_case() {
        let expected = crate::keys::digest(b"demo-key");
        let text = expected.iter().fold(String::new(), |text, byte| text + &format!("{byte:02X}"));
        assert_eq!(sha256(&text), Ok(expected));
        assert_eq!(sha256(&text.to_lowercase()), Ok(expected));
    }
}
