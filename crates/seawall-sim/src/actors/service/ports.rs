//! The connection tables of nodes: a place is taken from the opening of a connection until some time after its closing.

use crate::Nanos;
use std::collections::VecDeque;

/// One table for each node, all of the same size.
#[derive(Debug)]
pub(super) struct PortTables {
    size: u32,
    hold: Nanos,
    taken: Vec<u32>,
    /// Places of closed connections: when they are free, and the node. In order, since all are held equally long.
    closed: VecDeque<(Nanos, u32)>,
}

impl PortTables {
    /// Tables of this size; a place is free this long after its connection was closed.
    pub(super) fn new(nodes: u32, size: u32, hold: Nanos) -> Self {
        Self { size, hold, taken: vec![0; nodes as usize], closed: VecDeque::new() }
    }

    /// More nodes, with empty tables.
    pub(super) fn add_nodes(&mut self, nodes: u32) {
        self.taken.resize(self.taken.len() + nodes as usize, 0);
    }

    pub(super) fn nodes(&self) -> u32 {
        u32::try_from(self.taken.len()).unwrap_or(u32::MAX)
    }

    /// Takes a place; `false`: there is none.
    pub(super) fn take(&mut self, now: Nanos, node: u32) -> bool {
        self.free_closed(now);
        let taken = &mut self.taken[node as usize];
        let is_free = *taken < self.size;
        *taken += u32::from(is_free);
        is_free
    }

    /// Closes a connection.
    pub(super) fn close(&mut self, now: Nanos, node: u32) {
        self.closed.push_back((now.saturating_add(self.hold), node));
    }

    fn free_closed(&mut self, now: Nanos) {
        while let Some((_, node)) = self.closed.front().copied().filter(|(at, _)| *at <= now) {
            self.closed.pop_front();
            self.taken[node as usize] -= 1;
        }
    }

    /// Places that are taken, and nodes that have none left.
    pub(super) fn in_use(&mut self, now: Nanos) -> (u32, usize) {
        self.free_closed(now);
        (self.taken.iter().sum(), self.taken.iter().filter(|taken| **taken >= self.size).count())
    }

    /// Places of all tables.
    pub(super) fn most(&self) -> usize {
        self.taken.len() * self.size as usize
    }

    /// Closed connections that are still held.
    pub(super) fn len(&self) -> usize {
        self.closed.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_some_time_after_its_connection_was_closed() {
        let mut tables = PortTables::new(2, 2, 10);
        assert_eq!([0, 0, 0, 1].map(|node| tables.take(0, node)), [true, true, false, true]);
        assert_eq!(tables.in_use(0), (3, 1));
        tables.close(5, 0);
        assert_eq!((tables.take(14, 0), tables.take(15, 0), tables.take(15, 0)), (false, true, false));
        tables.add_nodes(1);
        assert_eq!((tables.nodes(), tables.take(15, 2), tables.in_use(15), tables.len()), (3, true, (4, 1), 0));
    }
}
