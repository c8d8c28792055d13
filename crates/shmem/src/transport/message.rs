//! What PEs send to agents, and what these reply: a head of fixed size, then a body.
//!
//! All hosts of a world run the same program on the same kind of processor, so the words are as the processor has them.

use bytemuck::{Pod, Zeroable};

/// What an agent is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Store the body at `position`.
    Put = 1,
    /// Store the body at `position`, then change the word at `signal` by `op` with `operand`.
    PutSignal,
    /// Store the elements of the body, each `width` bytes, `stride` bytes apart from `position` on.
    PutStrided,
    /// Reply with `length` bytes from `position` on.
    Get,
    /// Reply with `length` elements of `width` bytes, `stride` bytes apart from `position` on.
    GetStrided,
    /// Change the word of `width` bytes at `position` by `op`; reply with what was there if a `token` is given.
    Atomic,
    /// Reply when all messages up to number `after` are done.
    Flush,
    /// PEs have come to a rendezvous: the body is an [`Arrival`] of each, followed by what is in its slot.
    Arrive,
    /// PE `from` calls `pe` to handshake number `operand`; the body is its proposal.
    Handshake,
    /// PE `from` has left the world.
    Left,
    /// PE `from` has failed.
    Failed,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Put,
        Self::PutSignal,
        Self::PutStrided,
        Self::Get,
        Self::GetStrided,
        Self::Atomic,
        Self::Flush,
        Self::Arrive,
        Self::Handshake,
        Self::Left,
        Self::Failed,
    ];
}

impl Kind {
    /// Whether it changes what programs see, so that a quiet has to complete it.
    pub(crate) fn changes_memory(self) -> bool {
        matches!(
            self,
            Self::Put | Self::PutSignal | Self::PutStrided | Self::Atomic
        )
    }
}

/// How an atomic operation changes its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Op {
    /// Not at all.
    Fetch = 1,
    /// To the operand.
    Set,
    /// To the operand, if it is what is expected.
    CompareSwap,
    /// By adding, wrapping.
    Add,
    /// Bitwise.
    And,
    /// Bitwise.
    Or,
    /// Bitwise.
    Xor,
}

impl Op {
    const ALL: [Self; 7] = [
        Self::Fetch,
        Self::Set,
        Self::CompareSwap,
        Self::Add,
        Self::And,
        Self::Or,
        Self::Xor,
    ];
}

/// The head of every message. What a kind has no use for is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Head {
    /// Of [`Kind`], see [`Head::kind`].
    pub(crate) kind_code: u8,
    /// Of [`Op`], see [`Head::op`].
    pub(crate) op_code: u8,
    pub(crate) zero: u16,
    /// Bytes of an element or a word.
    pub(crate) width: u32,
    /// The PE that sends.
    pub(crate) from: u32,
    /// The PE whose memory this is about.
    pub(crate) pe: u32,
    /// Numbers the messages of `from` to this agent, from 1.
    pub(crate) number: u64,
    /// To be done after all messages of `from` up to this number.
    pub(crate) after: u64,
    /// Names the reply; 0: none is wanted.
    pub(crate) token: u64,
    pub(crate) position: u64,
    /// Position of the signal, or bytes between two elements (as a signed number).
    pub(crate) signal_or_stride: u64,
    /// Bytes or elements to be fetched.
    pub(crate) length: u64,
    pub(crate) operand: u64,
    pub(crate) expected: u64,
}

/// Bytes of a [`Head`].
pub(crate) const HEAD: usize = size_of::<Head>();

impl Head {
    /// A message of this kind, of nothing yet.
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind_code: kind as u8,
            ..Self::default()
        }
    }

    /// With this operation.
    pub(crate) fn with_op(self, op: Op) -> Self {
        Self {
            op_code: op as u8,
            ..self
        }
    }

    /// `None`: no message of ours.
    pub(crate) fn kind(&self) -> Option<Kind> {
        Kind::ALL
            .into_iter()
            .find(|&kind| kind as u8 == self.kind_code)
    }

    /// `None`: no operation of ours.
    pub(crate) fn op(&self) -> Option<Op> {
        Op::ALL.into_iter().find(|&op| op as u8 == self.op_code)
    }

    /// As bytes to send.
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::bytes_of(self)
    }

    /// Head and body of the bytes that came; `None` if they are fewer than a head.
    pub(crate) fn parse(message: &[u8]) -> Option<(Self, &[u8])> {
        let (head, body) = message.split_at_checked(HEAD)?;
        Some((bytemuck::pod_read_unaligned(head), body))
    }
}

/// How a PE arrives at a rendezvous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Arrival {
    pub(crate) pe: u64,
    /// The team's index.
    pub(crate) index: u64,
    pub(crate) epoch: u64,
    pub(crate) tag: u64,
    pub(crate) detail: u64,
    /// Bytes that follow.
    pub(crate) in_slot: u64,
    pub(crate) payload: [u64; crate::team::rendezvous::LINE_BYTES / 8],
}

/// The head of a reply; what was fetched follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Reply {
    /// The message's.
    pub(crate) token: u64,
    /// The word, of an atomic operation.
    pub(crate) word: u64,
}

impl Reply {
    /// As bytes to send.
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::bytes_of(self)
    }

    /// Head and body of the bytes that came; `None` if they are fewer than a head.
    pub(crate) fn parse(reply: &[u8]) -> Option<(Self, &[u8])> {
        let (head, body) = reply.split_at_checked(size_of::<Self>())?;
        Some((bytemuck::pod_read_unaligned(head), body))
    }
}
