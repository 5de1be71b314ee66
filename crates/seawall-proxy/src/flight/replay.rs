//! An answer as it came, kept from its first piece on for whoever joins.
//!
//! The pieces are the buffers that were read: keeping them copies nothing. What is kept is bounded for one answer
//! and, out of the budget of bytes, for all. At the bound the answer is *sealed*: nobody joins any more, and what
//! every reader has read is dropped. From then on a reader that falls too far behind the fastest loses its place: a
//! connection that is dead without anybody knowing must not stop the same client's next one.

use crate::bytes_budget::{BytesBudget, Reservation};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// What is kept of one answer at the most.
pub const REPLAY_BYTES: u64 = 1 << 20;
/// How far readers of a sealed answer may be apart where less was kept of it.
const LAG_BYTES: u64 = 64 * 1024;
/// The budget is asked in steps of this size.
const STEP: u64 = 16 * 1024;
/// What a piece takes beside its bytes.
const PIECE_BYTES: u64 = 64;

/// The pieces of an answer.
#[derive(Debug, Default)]
pub struct Replay {
    pieces: VecDeque<Bytes>,
    /// The number of the first piece that is kept.
    first: usize,
    bytes: u64,
    reservation: Option<Reservation>,
    sealed: bool,
}

/// What a reader finds at its place.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// The next piece.
    Piece(Bytes),
    /// It has read all that there is.
    Nothing,
    /// It was too far behind.
    Lost,
}

const fn cost(piece: &Bytes) -> u64 {
    piece.len() as u64 + PIECE_BYTES
}

impl Replay {
    /// Takes the next piece; `true`: with it the answer is sealed. `slowest`: the place of the slowest reader.
    pub fn push(&mut self, budget: &Arc<BytesBudget>, piece: Bytes, slowest: Option<usize>) -> bool {
        self.bytes += cost(&piece);
        self.pieces.push_back(piece);
        let seals = !self.sealed && !self.reserve(budget);
        self.sealed |= seals;
        if self.sealed {
            self.trim(slowest);
        }
        seals
    }

    fn reserve(&mut self, budget: &Arc<BytesBudget>) -> bool {
        if self.bytes > REPLAY_BYTES {
            return false;
        }
        let bytes = self.bytes.next_multiple_of(STEP);
        if let Some(reservation) = &mut self.reservation {
            return reservation.grow_to_within_half(bytes);
        }
        self.reservation = budget.reserve_within_half(bytes);
        self.reservation.is_some()
    }

    /// Drops what every reader has read, and what is more than readers may be apart.
    pub fn trim(&mut self, slowest: Option<usize>) {
        if !self.sealed {
            return;
        }
        let most = self.reservation.as_ref().map_or(0, Reservation::bytes).max(LAG_BYTES);
        while let Some(piece) = self.pieces.front() {
            let is_read = slowest.is_none_or(|slowest| self.first < slowest);
            // The newest piece is for the fastest reader: whoever reads it has been waiting for it.
            if !is_read && (self.bytes <= most || self.pieces.len() == 1) {
                return;
            }
            self.bytes -= cost(piece);
            self.pieces.pop_front();
            self.first += 1;
        }
    }

    /// What stands at a place.
    pub fn at(&self, place: usize) -> Found {
        let Some(index) = place.checked_sub(self.first) else { return Found::Lost };
        self.pieces.get(index).map_or(Found::Nothing, |piece| Found::Piece(piece.clone()))
    }

    /// The place after the last piece.
    pub fn end(&self) -> usize {
        self.first + self.pieces.len()
    }

    /// The whole answer, where it is one piece.
    pub fn only(&self) -> Option<Bytes> {
        (self.first == 0 && self.pieces.len() == 1).then(|| self.pieces[0].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: usize) -> Bytes {
        Bytes::from(vec![b'x'; bytes - usize::try_from(PIECE_BYTES).unwrap()])
    }

    #[test]
    fn up_to_the_bound_all_is_kept_and_then_what_somebody_still_reads() {
        let budget = BytesBudget::new(1 << 30);
        let mut replay = Replay::default();
        for _ in 0..16 {
            assert!(!replay.push(&budget, piece(64 * 1024), Some(1)));
        }
        assert_eq!((budget.used(), replay.end()), (REPLAY_BYTES, 16));
        assert!(matches!(replay.at(0), Found::Piece(_)), "whoever joins begins here");
        assert!(replay.push(&budget, piece(1024), Some(3)), "sealed");
        assert_eq!((replay.at(2), replay.at(17)), (Found::Lost, Found::Nothing));
        assert!(matches!(replay.at(3), Found::Piece(_)));
        assert!(!replay.push(&budget, piece(1024), Some(17)), "sealed once");
        assert_eq!((replay.pieces.len(), replay.end()), (1, 18));
        replay.trim(None);
        assert_eq!(replay.pieces.len(), 0);
        drop(replay);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn who_is_too_far_behind_loses_its_place_and_the_fastest_never() {
        let budget = BytesBudget::new(1 << 30);
        let mut replay = Replay::default();
        for _ in 0..40 {
            replay.push(&budget, piece(64 * 1024), Some(0));
        }
        assert_eq!((replay.at(0), replay.bytes), (Found::Lost, REPLAY_BYTES));
        assert!(matches!(replay.at(39), Found::Piece(_)));
        replay.push(&budget, piece(4 << 20), Some(0));
        assert!(matches!(replay.at(40), Found::Piece(_)));
    }

    #[test]
    fn replays_leave_half_of_the_budget_to_requests() {
        let budget = BytesBudget::new(100 * 1024);
        let mut replay = Replay::default();
        assert!(!replay.push(&budget, piece(40 * 1024), None));
        assert!(replay.push(&budget, piece(16 * 1024), Some(0)), "sealed");
        assert_eq!(budget.used(), 48 * 1024);
        assert!(matches!(replay.at(0), Found::Piece(_)), "within the lag");
        let mut other = Replay::default();
        assert!(other.push(&budget, piece(16 * 1024), Some(0)));
        assert!(budget.reserve(52 * 1024).is_some());
    }
}
