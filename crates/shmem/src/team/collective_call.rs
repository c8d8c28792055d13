//! What a PE says about the collective it calls, so that a mismatch is seen and named.

use crate::team::rendezvous::Tag;
use std::fmt;

/// The collective operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// `barrier`
    Barrier = 1,
    /// `sync`
    Sync,
    /// `alloc`
    Alloc,
    /// `free`
    Free,
    /// `broadcast`
    Broadcast,
    /// `fcollect`
    Fcollect,
    /// `alltoall`
    Alltoall,
    /// `reduce`
    Reduce,
    /// `share_fd`
    Share,
    /// `agree`
    Agree,
    /// `collect`
    Collect,
    /// `alltoalls`
    Alltoalls,
    /// `split_strided` and `split_2d`
    Split,
    /// `destroy` of a team
    Destroy,
    /// `inscan` and `exscan`
    Scan,
    /// `realloc`
    Realloc,
}

const KINDS: [Kind; 16] = [
    Kind::Barrier,
    Kind::Sync,
    Kind::Alloc,
    Kind::Free,
    Kind::Broadcast,
    Kind::Fcollect,
    Kind::Alltoall,
    Kind::Reduce,
    Kind::Share,
    Kind::Agree,
    Kind::Collect,
    Kind::Alltoalls,
    Kind::Split,
    Kind::Destroy,
    Kind::Scan,
    Kind::Realloc,
];

/// Parameter of a `free` or `realloc` of an address that no allocation begins at.
pub(crate) const NOT_ALLOCATED: u64 = u64::MAX >> 8;

/// One PE's collective call as the others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which collective.
    pub kind: Kind,
    /// Its root, alignment, heap offset or operation, by kind. 0 where there is none.
    pub parameter: u64,
    /// Its size in bytes (`free`: the heap offset). 0 where there is none.
    pub bytes: u64,
}

impl Call {
    pub(crate) fn to_tag(self) -> Tag {
        Tag {
            tag: self.kind as u64 | self.parameter << 8,
            detail: self.bytes,
        }
    }

    /// The call behind a tag another PE wrote. An unknown kind can only be a damaged word; it shows
    /// as a barrier with a strange parameter rather than as a panic in an error path.
    pub(crate) fn from_tag(tag: Tag) -> Self {
        let index = (tag.tag & 0xff) as usize;
        Self {
            kind: *KINDS.get(index.wrapping_sub(1)).unwrap_or(&Kind::Barrier),
            parameter: tag.tag >> 8,
            bytes: tag.detail,
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            parameter,
            bytes,
        } = self;
        match kind {
            Kind::Barrier => f.write_str("barrier"),
            Kind::Sync => f.write_str("sync"),
            Kind::Alloc if *parameter == 0 => write!(f, "zeroing at heap offset {bytes}"),
            Kind::Alloc => write!(f, "alloc of {bytes} bytes aligned to {parameter}"),
            Kind::Free | Kind::Realloc if *parameter == NOT_ALLOCATED => {
                let name = if *kind == Kind::Free {
                    "free"
                } else {
                    "realloc"
                };
                write!(f, "{name} of an address that is not allocated")
            }
            Kind::Realloc => write!(f, "realloc at heap offset {parameter} to {bytes} bytes"),
            Kind::Free => write!(f, "free at heap offset {bytes}"),
            Kind::Broadcast => write!(f, "broadcast of {bytes} bytes from PE {parameter}"),
            Kind::Fcollect => write!(f, "fcollect of {bytes} bytes"),
            Kind::Alltoall => write!(f, "alltoall of {bytes} bytes"),
            Kind::Collect => f.write_str("collect"),
            Kind::Alltoalls => write!(f, "alltoalls of {bytes} bytes"),
            Kind::Split if *parameter == u64::MAX >> 8 => write!(f, "split_2d in rows of {bytes}"),
            Kind::Split => write!(
                f,
                "split_strided of {} PEs from PE {} at stride {}",
                *bytes as i64,
                parameter >> 24,
                // The stride's low 24 bits, with its sign.
                ((*parameter as u32) << 8) as i32 >> 8
            ),
            Kind::Scan => write!(f, "scan of {bytes} bytes with operation {parameter:#x}"),
            Kind::Destroy => f.write_str("destroy"),
            Kind::Agree => write!(f, "agree on {parameter} and {bytes}"),
            Kind::Share => write!(f, "share_fd, round {bytes}"),
            Kind::Reduce => write!(f, "reduce of {bytes} bytes with operation {parameter:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_survive_the_trip_through_a_tag() {
        for kind in KINDS {
            let call = Call {
                kind,
                parameter: 4096,
                bytes: 1 << 40,
            };
            assert_eq!(Call::from_tag(call.to_tag()), call);
        }
    }
}
