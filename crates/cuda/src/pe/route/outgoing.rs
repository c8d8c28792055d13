//! Elements of a PE's GPU on their way to another PE, in as many messages as it takes: what a kernel puts, or the answer to
//! what another PE gets. A message is made when there is a place for it, so however much is put, as much of the host's
//! memory serves.

use crate::pe::route::gpu::Spread;
use crate::pe::route::message::{Head, Kind};

/// See the [module](self).
pub(super) struct Outgoing {
    pub(super) pe: usize,
    head: Head,
    from: Spread,
    /// Bytes that have not been sent.
    left: usize,
}

impl Outgoing {
    /// `bytes` bytes, elements of `from`; `head` is that of the first message.
    pub(super) fn new(pe: usize, head: Head, from: Spread, bytes: usize) -> Self {
        Self {
            pe,
            head,
            from,
            left: bytes,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Head, place and bytes of the next message, whose body has at most `most` bytes.
    pub(super) fn next(&mut self, most: usize) -> (Head, Spread, usize) {
        let width = self.from.width;
        let bytes = self.left.min((most / width).max(1) * width);
        let elements = (bytes / width) as u64;
        let (mut head, from) = (self.head, self.from);
        head.body = bytes as u32;
        self.left -= bytes;
        self.from.address += elements * from.stride as u64;
        match head.kind() {
            Some(Kind::Put) => self.head.offset += bytes as u64,
            Some(Kind::PutStrided) => self.head.offset += elements * head.stride,
            // Answers are stored in the order in which they come.
            _ => {}
        }
        (head, from, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(kind: Kind, from: Spread, bytes: usize, most: usize) -> Vec<(u64, u64, usize)> {
        let head = Head {
            offset: 1000,
            stride: 100,
            width: from.width as u64,
            ..Head::new(kind)
        };
        let mut outgoing = Outgoing::new(1, head, from, bytes);
        let mut all = Vec::new();
        while !outgoing.is_done() {
            let (head, from, bytes) = outgoing.next(most);
            assert_eq!(head.body as usize, bytes);
            all.push((head.offset, from.address, bytes));
        }
        all
    }

    #[test]
    fn bytes_follow_one_another() {
        let all = messages(Kind::Put, Spread::bytes(70), 21, 10);
        assert_eq!(all, [(1000, 70, 10), (1010, 80, 10), (1020, 90, 1)]);
        let all = messages(Kind::Data, Spread::bytes(70), 20, 10);
        assert_eq!(all, [(1000, 70, 10), (1000, 80, 10)]);
    }

    #[test]
    fn elements_are_not_cut() {
        let from = Spread {
            address: 70,
            width: 4,
            stride: 16,
        };
        let all = messages(Kind::PutStrided, from, 5 * 4, 11);
        assert_eq!(all, [(1000, 70, 8), (1200, 102, 8), (1400, 134, 4)]);
    }
}
