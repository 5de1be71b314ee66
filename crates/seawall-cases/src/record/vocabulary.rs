//! The words of a record's closed lists, each with its meaning.
//!
//! A word is added when a case needs it, here and nowhere else: the schema, the reference page and the search take the
//! words and their meanings from these types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One word of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// As it is written.
    pub word: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// One closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    /// The key of a record that takes its words.
    pub key: &'static str,
    /// Its words.
    pub words: &'static [Word],
}

/// Every closed list, in the order of a record's keys.
pub const LISTS: &[List] = &[
    List { key: "domain", words: Domain::WORDS },
    List { key: "date_kind", words: DateKind::WORDS },
    List { key: "severity", words: Severity::WORDS },
    List { key: "symptoms", words: Symptom::WORDS },
    List { key: "components", words: Component::WORDS },
    List { key: "root_cause", words: RootCause::WORDS },
    List { key: "contributing", words: Contributing::WORDS },
    List { key: "sources/kind", words: SourceKind::WORDS },
];

/// Makes the type of a list: each variant with its meaning, as its documentation, and its word.
macro_rules! vocabulary {
    ($(#[doc = $about:literal])+ $name:ident { $($(#[doc = $meaning:literal])+ $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[schemars(inline)]
        pub enum $name {
            $($(#[doc = $meaning])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Its words, in the order of the variants.
            pub const WORDS: &[Word] =
                &[$(Word { word: $word, meaning: concat!($($meaning),+).trim_ascii() },)+];

            /// The word as it is written.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

vocabulary! {
    /// What a case is about.
    Domain {
        /// A service of Microsoft Azure.
        Azure = "azure",
        /// What serves models: routing, inference, accelerators.
        AiInfra = "ai-infra",
        /// Reading and classifying documents with models.
        DocumentProcessing = "document-processing",
    }
}

vocabulary! {
    /// What the date of a record is the date of.
    DateKind {
        /// The day on which users began to be affected, in UTC.
        Incident = "incident",
        /// The day of the report, where it does not tell the day of the incident.
        Publication = "publication",
    }
}

vocabulary! {
    /// How far users were affected at the worst time.
    Severity {
        /// It was not published, and we do not guess.
        Unknown = "unknown",
        /// Few requests failed, or only slower ones.
        Minor = "minor",
        /// Most requests of some users or of a region failed.
        Major = "major",
        /// Nearly all requests of nearly all users failed.
        Critical = "critical",
    }
}

vocabulary! {
    /// What users and operators saw.
    Symptom {
        /// Answers took much longer than usual.
        HighLatency = "high-latency",
        /// Many requests failed.
        HighErrorRate = "high-error-rate",
        /// Some requests got no answer in time, others did.
        IntermittentTimeouts = "intermittent-timeouts",
        /// Processes were ended because they had no memory left.
        OomKilled = "oom-killed",
        /// Requests were refused because the service said that it was full.
        OverloadRejections = "overload-rejections",
        /// Work that was done was not to be found and was done again.
        LostResults = "lost-results",
        /// Instances were restarted over and over, and served less each time.
        RestartLoop = "restart-loop",
        /// No new connection could be opened, though what it would lead to was well.
        ConnectionExhaustion = "connection-exhaustion",
    }
}

vocabulary! {
    /// The parts of a system that took part.
    Component {
        /// What distributes inference requests over models and regions.
        ModelRouting = "model-routing",
        /// What finds out that a request is already being worked on.
        RequestDeduplication = "request-deduplication",
        /// What keeps finished results so that they are not computed again.
        ResultCache = "result-cache",
        /// Workers that share accelerators.
        GpuWorkers = "gpu-workers",
        /// What tells other services about accounts and resources.
        MetadataService = "metadata-service",
        /// A cache in front of a database or a service.
        CachingLayer = "caching-layer",
        /// What decides whether an instance is well.
        HealthCheck = "health-check",
        /// The network connections that instances of a machine share.
        NodeNetwork = "node-network",
    }
}

vocabulary! {
    /// What set the incident off.
    RootCause {
        /// A change that was being rolled out.
        DeployRollout = "deploy-rollout",
        /// A defect that had been there for some time and met its load.
        SoftwareDefect = "software-defect",
    }
}

vocabulary! {
    /// What made it larger, longer or harder to see.
    Contributing {
        /// Failures were retried so often that the retries became the load.
        RetryStorm = "retry-storm",
        /// What failed was shared by more users than it had to be.
        BlastRadiusTooWide = "blast-radius-too-wide",
        /// Something was taken for true that nobody had checked.
        AssumptionUnverified = "assumption-unverified",
        /// Some traffic was under no limit, or under a weaker one than the rest.
        MissingRateLimit = "missing-rate-limit",
        /// Capacity could not grow any further.
        CapacityLimit = "capacity-limit",
        /// The work of a few users took the capacity of all others.
        NoisyNeighbor = "noisy-neighbor",
        /// A setting was wrong, and nothing had shown it.
        Misconfiguration = "misconfiguration",
        /// Something said that it had stored what it then threw away.
        SilentWriteLoss = "silent-write-loss",
        /// Clients were told to come back all at the same time.
        SynchronizedRetries = "synchronized-retries",
        /// A cache was empty or passed by when its load came.
        ColdCache = "cold-cache",
        /// A health check asked about something else than the instance itself.
        HealthCheckOnDependency = "health-check-on-dependency",
        /// Nothing that was measured pointed at the cause.
        MonitoringGap = "monitoring-gap",
    }
}

vocabulary! {
    /// What a source is.
    SourceKind {
        /// The status page of the service, or the review that is published there.
        OfficialStatus = "official-status",
        /// A post-mortem by those who run the service, outside of a status page.
        OfficialPostmortem = "official-postmortem",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_written_alike_and_has_a_meaning_of_its_own() {
        for list in LISTS {
            let mut meanings: Vec<&str> = list.words.iter().map(|word| word.meaning).collect();
            for Word { word, meaning } in list.words {
                let is_plain = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
                assert!(is_plain && meaning.ends_with('.') && meaning.len() > 15, "{word}: {meaning}");
            }
            meanings.sort_unstable();
            meanings.dedup();
            assert_eq!(meanings.len(), list.words.len(), "{}", list.key);
        }
    }

    #[test]
    fn a_word_is_what_its_variant_is_written_as() {
        let written = serde_json::to_value(Contributing::ColdCache).expect("a word always serialises");
        assert_eq!(written, Contributing::ColdCache.word());
    }
}
