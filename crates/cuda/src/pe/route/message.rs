//! What the threads that serve PEs of different hosts say to each other: a head of fixed size, then a body.
//!
//! All are about the device heap of the PE that gets them, and are done in the order in which they are sent.

use bytemuck::{Pod, Zeroable};

/// What the other side is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// Store the body at `offset`.
    Put = 1,
    /// Store the body's elements of `width` bytes at `offset` and every `stride` bytes from there.
    PutStrided,
    /// Send `bytes` bytes from `offset` on as [`Kind::Data`].
    Get,
    /// Send `bytes / width` elements of `width` bytes, every `stride` bytes from `offset` on.
    GetStrided,
    /// The next bytes of what entry `token` gets.
    Data,
    /// Change a word (`op` as in `inbox_entry`), and send what was there as [`Kind::Value`] if `token` is not 0.
    Atomic,
    /// What entry `token` fetches is `operand`.
    Value,
    /// Send the word of `width` bytes at `offset` as [`Kind::Value`].
    Fetch,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Put,
        Self::PutStrided,
        Self::Get,
        Self::GetStrided,
        Self::Data,
        Self::Atomic,
        Self::Value,
        Self::Fetch,
    ];

    /// Whether it stores something in the heap.
    pub(super) fn stores(self) -> bool {
        matches!(self, Self::Put | Self::PutStrided)
    }
}

/// The head of a message. What a kind has no use for is 0.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Head {
    pub(super) kind: u32,
    /// Bytes of the body.
    pub(super) body: u32,
    pub(super) op: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) width: u64,
    pub(super) stride: u64,
    pub(super) operand: u64,
    pub(super) expected: u64,
    /// 1 + the number of the entry that waits.
    pub(super) token: u64,
}

impl Head {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind: kind as u32,
            ..Self::default()
        }
    }

    /// `None`: no message of ours.
    pub(super) fn kind(&self) -> Option<Kind> {
        Kind::ALL.into_iter().find(|&kind| kind as u32 == self.kind)
    }
}

/// Bytes of a [`Head`].
pub(super) const HEAD: usize = size_of::<Head>();
