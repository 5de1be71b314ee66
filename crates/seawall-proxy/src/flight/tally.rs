//! What an answer has cost, as far as it has come.

use seawall_core::cost::Used;
use seawall_core::time::Instant;
use seawall_wire::usage::Usage;

/// The counts of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Tokens, as far as the upstream has told them.
    pub usage: Option<Usage>,
    /// Pieces of a stream that carried output.
    pub outputs: u64,
    /// When the first of them passed.
    pub first_output: Option<Instant>,
    /// Whether it is a stream.
    pub is_stream: bool,
    /// Whether a stream has said that it is complete. Before that a usage in it says how far it has come, or only what
    /// the prompt is.
    pub is_whole: bool,
}

impl Tally {
    /// Of an answer in one piece.
    pub const fn of_whole(usage: Option<Usage>) -> Self {
        Self { usage, outputs: 0, first_output: None, is_stream: false, is_whole: true }
    }

    /// Whether the output is known only by the pieces that have passed.
    pub const fn is_estimated(&self) -> bool {
        self.is_stream && !(self.is_whole && self.usage.is_some())
    }

    /// Tokens of the output: as they were told, or else the pieces that have passed. `None`: it is no stream, and
    /// nothing was told.
    pub fn output_tokens(&self) -> Option<u64> {
        let told = self.usage.map(|usage| usage.output_tokens);
        if self.is_estimated() { Some(told.unwrap_or(0).max(self.outputs)) } else { told }
    }

    /// The same for the engine; `None`: nothing is known.
    pub fn used(&self) -> Option<Used> {
        Some(Used {
            output_tokens: self.output_tokens()?,
            // There is no prompt without a token: then only the output was told.
            input_tokens: self.usage.map(|usage| usage.input_tokens).filter(|tokens| *tokens > 0),
            cached_input_tokens: self.usage.map_or(0, |usage| usage.cached_input_tokens),
            output_is_estimated: self.is_estimated(),
            first_output: self.first_output,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: Usage = Usage { input_tokens: 9, cached_input_tokens: 4, output_tokens: 5 };

    fn used(tally: Tally) -> Option<(Option<u64>, u64, bool)> {
        tally.used().map(|used| (used.input_tokens, used.output_tokens, used.output_is_estimated))
    }

    #[test]
    fn f18_a_stream_without_usage_is_counted_and_one_that_broke_off_is_not_taken_at_its_first_word() {
        let stream = |usage, outputs, is_whole| Tally { usage, outputs, first_output: None, is_stream: true, is_whole };
        assert_eq!(used(stream(Some(USAGE), 3, true)), Some((Some(9), 5, false)));
        assert_eq!(used(stream(None, 3, true)), Some((None, 3, true)));
        assert_eq!(used(stream(None, 0, false)), Some((None, 0, true)));
        // The usage of a first event: one token has been made.
        let first = Usage { output_tokens: 1, ..USAGE };
        assert_eq!(used(stream(Some(first), 7, false)), Some((Some(9), 7, true)));
        assert_eq!(used(stream(Some(USAGE), 3, false)), Some((Some(9), 5, true)));
        let only_output = Usage { input_tokens: 0, cached_input_tokens: 0, output_tokens: 5 };
        assert_eq!(used(stream(Some(only_output), 5, true)), Some((None, 5, false)));
    }

    #[test]
    fn an_answer_in_one_piece_is_what_was_told_of_it() {
        assert_eq!(used(Tally::of_whole(Some(USAGE))), Some((Some(9), 5, false)));
        assert_eq!(used(Tally::of_whole(None)), None);
        assert_eq!(used(Tally::default()), None);
    }
}
