//! What PEs send to agents, and what these reply: a head of fixed size, then a body. At the front of any message's body
//! there may be puts and questions that were [combined](crate::transport::remote::combined): a [`Part`] and what follows
//! it, one after the other.
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
    /// Nothing but what is combined.
    Puts,
}

impl Kind {
    const ALL: [Self; 12] = [
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
        Self::Puts,
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
    /// Bytes of combined puts and questions at the front of the body.
    pub(crate) combined: u16,
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

/// The head of what is combined: a put, whose bytes follow, or a get or a fetching atomic, whose [`Question`] follows.
/// What follows has any alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Part {
    pub(crate) pe: u32,
    /// Bytes that follow.
    pub(crate) bytes: u16,
    /// Of [`Kind`].
    pub(crate) kind_code: u8,
    /// Of [`Op`].
    pub(crate) op_code: u8,
    pub(crate) position: u64,
}

/// What a [`Part`] wants to know. The words are those of [`Head`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Question {
    pub(crate) token: u64,
    /// Bytes to be fetched, or of the word.
    pub(crate) length: u64,
    pub(crate) operand: u64,
    pub(crate) expected: u64,
}

/// Bytes of a [`Part`].
pub(crate) const PART: usize = size_of::<Part>();

impl Part {
    /// Of a put of `bytes` bytes to `position` of `pe`.
    pub(crate) fn put(pe: usize, position: usize, bytes: usize) -> Self {
        Self {
            pe: pe as u32,
            bytes: bytes as u16,
            kind_code: Kind::Put as u8,
            op_code: 0,
            position: position as u64,
        }
    }

    /// Of a get or a fetching atomic, and what follows.
    pub(crate) fn question(head: &Head) -> (Self, Question) {
        let part = Self {
            pe: head.pe,
            bytes: size_of::<Question>() as u16,
            kind_code: head.kind_code,
            op_code: head.op_code,
            position: head.position,
        };
        let question = Question {
            token: head.token,
            length: match head.kind() {
                Some(Kind::Atomic) => u64::from(head.width),
                _ => head.length,
            },
            operand: head.operand,
            expected: head.expected,
        };
        (part, question)
    }

    /// Whether a [`Question`] follows.
    pub(crate) fn is_question(&self) -> bool {
        self.kind_code != Kind::Put as u8
    }

    /// As a message of its own, of sender `from`, and the question if it is one.
    pub(crate) fn message(&self, from: &Head, body: &[u8]) -> Option<(Kind, Head)> {
        let head = Head {
            kind_code: self.kind_code,
            op_code: self.op_code,
            combined: 0,
            pe: self.pe,
            position: self.position,
            token: 0,
            ..*from
        };
        match head.kind()? {
            Kind::Put => Some((Kind::Put, head)),
            kind @ (Kind::Get | Kind::Atomic) => {
                let question: Question = bytemuck::try_pod_read_unaligned(body).ok()?;
                let asks = Head {
                    token: question.token,
                    length: question.length,
                    width: question.length as u32,
                    operand: question.operand,
                    expected: question.expected,
                    ..head
                };
                Some((kind, asks))
            }
            _ => None,
        }
    }

    /// The first of some combined ones, what follows it, and the others; `None`: they are cut off.
    pub(crate) fn parse(parts: &[u8]) -> Option<(Self, &[u8], &[u8])> {
        let (part, rest) = parts.split_at_checked(PART)?;
        let part: Self = bytemuck::pod_read_unaligned(part);
        let (bytes, rest) = rest.split_at_checked(part.bytes as usize)?;
        Some((part, bytes, rest))
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
