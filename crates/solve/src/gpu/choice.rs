//! Which way of using the GPUs a solve takes, and why not a faster one.

use crosswarp_cuda::DeviceWorldError;
use crosswarp_shmem::Pe;

use crate::gpu::error::GpuError;
use crate::gpu::strategy::Strategy;
use crate::pes::agree::least;
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;

/// How the sweeps of a solve on GPUs were made; the same on every PE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// `sweep`, `host-exchange`, `device-put` or `persistent`, as [`Strategy`] has them; `passes` for passes of several
    /// sweeps without an exchange between GPUs: of one PE, or with halos that travel through the hosts. `cycles` of
    /// multigrid, alone or in conjugate gradients; `steps` of methods without coarse levels.
    pub taken: &'static str,
    /// What [`Strategy::Auto`] would have preferred.
    pub declined: Vec<Declined>,
}

/// A strategy that could not be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declined {
    /// Which.
    pub strategy: Strategy,
    /// Why not, by the first PE that could not.
    pub reason: String,
}

/// Bytes of a reason that all PEs learn.
const REASON_BYTES: usize = 2048;
const REASON_WORDS: usize = REASON_BYTES / 8;

impl Choice {
    /// Of a method with so many levels, or 0: no strategy is chosen.
    pub(crate) fn of_levels(levels: usize) -> Choice {
        Choice {
            taken: if levels > 0 { "cycles" } else { "steps" },
            ..Choice::default()
        }
    }

    /// `attempt`, or nothing, and why is noted. Collective: it fails on all PEs or on none.
    ///
    /// Errors: the world's.
    pub(crate) fn prefer<T>(
        &mut self,
        pe: &Pe,
        strategy: Strategy,
        attempt: Result<T, GpuError>,
    ) -> Result<Option<T>, PeError> {
        let error = match attempt {
            Ok(taken) => return Ok(Some(taken)),
            Err(error) => error,
        };
        let reason = reason_of_all(pe, &error)?;
        self.declined.push(Declined { strategy, reason });
        Ok(None)
    }
}

/// What the first PE says that has a reason of its own. Collective.
fn reason_of_all(pe: &Pe, error: &GpuError) -> Result<String, PeError> {
    let of_another = matches!(
        error,
        GpuError::Pe(PeError::SetUpFailed { .. })
            | GpuError::DeviceWorld(DeviceWorldError::PeerFailed { .. })
    );
    first_text(pe, error.to_string(), of_another)
}

/// The `text` of the first PE that has not got it from another, and which that is. Collective.
fn first_text(pe: &Pe, mut text: String, of_another: bool) -> Result<String, PeError> {
    let me = pe.my_pe() as u64;
    let first = least(pe, if of_another { u64::MAX } else { me })?;
    // If every PE has it from another, the first one repeats that.
    let speaks = me == if first == u64::MAX { 0 } else { first };
    let mut words = [0u64; REASON_WORDS];
    if speaks {
        if first != u64::MAX && pe.n_pes() > 1 {
            text.push_str(&format!(" (PE {me})"));
        }
        while text.len() > REASON_BYTES {
            text.pop();
        }
        bytemuck::bytes_of_mut(&mut words)[..text.len()].copy_from_slice(text.as_bytes());
    }
    let reduction = Reduction::new(pe, REASON_WORDS)?;
    // All others' words are zero.
    reduction.sum(&mut words)?;
    reduction.free()?;
    let text = String::from_utf8_lossy(bytemuck::bytes_of(&words)).into_owned();
    Ok(text.trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosswarp_shmem::spmd;

    #[test]
    fn all_pes_learn_the_first_reason() {
        // PE 2 cannot, PE 3 cannot either, the others only know that.
        let choices = spmd(4, |pe| {
            let mut choice = Choice::default();
            let attempt = match pe.my_pe() {
                2 | 3 => Err(GpuError::TooLargeForChip {
                    cells: 1000 + pe.my_pe(),
                    most: 5,
                }),
                _ => Err(PeError::SetUpFailed { pe: 2 }.into()),
            };
            let taken: Option<()> = choice.prefer(pe, Strategy::Persistent, attempt).unwrap();
            assert_eq!(taken, None);
            choice
        })
        .unwrap();
        for choice in &choices {
            assert_eq!(choice, &choices[0]);
            let [declined] = &choice.declined[..] else {
                panic!("{choice:?}")
            };
            assert_eq!(declined.strategy, Strategy::Persistent);
            let reason = &declined.reason;
            assert!(
                reason.contains("1002") && reason.ends_with("(PE 2)"),
                "{reason}"
            );
        }
    }

    #[test]
    fn long_reasons_are_cut_between_characters() {
        let reasons = spmd(2, |pe| first_text(pe, "ä".repeat(3000), false).unwrap()).unwrap();
        for reason in &reasons {
            assert!(reason.len() <= REASON_BYTES && reason.len() > REASON_BYTES - 4);
            assert!(reason.ends_with('ä'));
        }
    }
}
