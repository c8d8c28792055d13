//! The verbs from the host in stream order: copies by the copy engines, and kernels of one collective
//! each (`kernels/on_stream`).
#![allow(unsafe_code)] // Calls into libcuda; launches kernels of this crate.

use bytemuck::Pod;
use crosswarp_shmem::op::{self, ReduceOp};
use crosswarp_shmem::{Cmp, SignalOp, WorldKind};

use crate::compile::module::Function;
use crate::driver::error::CudaError;
use crate::driver::libcuda::cu;
use crate::driver::memory::same_length;
use crate::driver::stream::Stream;
use crate::layout::{Comparison, SMALL_BYTES, STREAM_THREADS};
use crate::pe::collective::{Collective, DeviceNumber, code};
use crate::pe::error::DeviceWorldError;
use crate::pe::kernels::Move;
use crate::pe::on_stream::routed::Way;
use crate::pe::sources::MEETING;
use crate::pe::team::DeviceTeam;
use crate::pe::view::{DeviceMemory, DeviceSymRef};
use crate::pe::world::DeviceWorld;

pub(crate) mod routed;
mod strided;

/// What a block of a collective moves at least, in bytes, before there are more of them.
const PART_BYTES: usize = 512;

/// The units, from widest to narrowest, that `bytes` and both places are multiples of: place in
/// [`Move::block`] and size.
fn unit(bytes: usize, places: [usize; 2]) -> (usize, usize) {
    let all = bytes | places[0] | places[1];
    match all {
        _ if all.is_multiple_of(8) => (2, 8),
        _ if all.is_multiple_of(4) => (1, 4),
        _ => (0, 1),
    }
}

/// # Verbs in stream order
/// Each is given to the stream and runs after the stream's earlier work; the calls return at once. All can
/// be captured into a [`Graph`](crate::Graph).
///
/// `put_on_stream` and `get_on_stream` are the copy engines' and take no SM, nor does a
/// signal that is set on a PE of this host outside of captures. The others are kernels. Of payloads beyond 2 KiB, on one
/// host and but for sums and the like from 16 MiB on, block b of every PE's grid moves the same part, and meets the
/// others' blocks b alone (`kernels/on_stream/by_blocks.cuh`).
///
/// # Who calls
/// `put_on_stream` to `signal_wait_on_stream`: any PE by itself. The collectives: all PEs of the team,
/// the same ones in the same order with the same sizes, in streams that nothing holds back on account
/// of another PE's later call. A team's collectives must follow one another, so use one stream for
/// a team (or order them by events), and a team of its own for each stream of collectives.
///
/// PEs that are threads may share a GPU: each then launches at most its share of one block per SM, so
/// that the kernels of all PEs that wait for one another are on the GPU at once, beside those of one
/// more team. What else runs there must leave them room.
///
/// # While a kernel waits for another PE
/// - No PE whose help it needs may call what waits for all kernels of the GPU: freeing (dropping a
///   [`Buffer`](crate::Buffer), [`PinnedBuffer`](crate::PinnedBuffer), [`DeviceTeam`] or device world),
///   loading and unloading modules ([`Module`](crate::Module), [`load`](Self::load),
///   [`new`](Self::new)), [`Device::synchronize`](crate::Device::synchronize), the first launch of a kernel
///   that was not loaded before ([`Launch::load`](crate::Launch::load)), and of one whose threads need more
///   local memory than any before. Allocating, copies, clearing, streams, events and graphs do not wait
///   (measured, driver 580). In a world of several hosts this holds for the PE that waits, too: a thread
///   of its process copies for it.
/// - At most 8 streams of a GPU, of all its PEs, may hold such kernels: the driver has 8 hardware queues
///   per process and GPU (`CUDA_DEVICE_MAX_CONNECTIONS`, up to 32, read when the process first uses
///   GPUs), and work in a queue waits for what is before it. Launches from several threads take turns,
///   since the driver may put streams that are given work at the same moment into one queue; launches
///   of other libraries do not.
///
/// # Memory ordering
/// A collective is complete on this PE for what follows it in the stream. Puts are complete for all PEs
/// after a later `barrier_on_stream`, or for the PE that waited for a later `signal_on_stream`. As with
/// the device verbs, every PE's destination must be ready before any PE calls: end its earlier use with
/// a barrier.
///
/// # Errors
/// Those of the driver and of launching; [`DeviceWorldError::SharedByProcesses`] on every PE from verbs
/// that wait, where PEs that are processes share a GPU. Waits that end in vain are reported by
/// [`DeviceWorld::synchronize`], also collectives whose PEs do not call the same: every PE of the team gets a
/// [`KernelMismatch`](crate::KernelMismatch), if need be after a part of a large payload has moved. (A PE that has
/// been given more collectives of the team goes on to them, and one that has not looked yet may then miss what was wrong.
/// NCCL does not compare, see [`use_nccl`](DeviceWorld::use_nccl).)
///
/// # Panics
/// Views of different lengths where they must agree, PEs that do not exist, teams and symmetric objects of another
/// world.
impl DeviceWorld<'_> {
    /// Copies `source`, in this PE's device memory, to `dest` on `pe`.
    pub fn put_on_stream<'a, 'b, T: Pod>(
        &self,
        stream: &Stream,
        dest: impl Into<DeviceSymRef<'a, T>>,
        source: impl Into<DeviceMemory<'b, T>>,
        pe: usize,
    ) -> Result<(), DeviceWorldError> {
        let (dest, source) = (dest.into(), source.into());
        same_length(dest.len(), source.len());
        let (to, from) = (dest.address(self.heap(), pe), source.address(self.heap()));
        let bytes = size_of::<T>() * dest.len();
        if !self.is_mapped(pe) {
            let place = (from, dest.place(self.heap()));
            // SAFETY: both views are of so many bytes; freeing them waits for the GPU's work.
            return unsafe { self.routed_copy(stream, Way::Put, place, bytes, pe) };
        }
        Ok(self.copy(stream, to, from, bytes)?)
    }

    /// Copies `source` on `pe` to `dest`, in this PE's device memory.
    pub fn get_on_stream<'a, 'b, T: Pod>(
        &self,
        stream: &Stream,
        dest: impl Into<DeviceMemory<'a, T>>,
        source: impl Into<DeviceSymRef<'b, T>>,
        pe: usize,
    ) -> Result<(), DeviceWorldError> {
        let (dest, source) = (dest.into(), source.into());
        same_length(dest.len(), source.len());
        let (to, from) = (dest.address(self.heap()), source.address(self.heap(), pe));
        let bytes = size_of::<T>() * source.len();
        if !self.is_mapped(pe) {
            let place = (to, source.place(self.heap()));
            // SAFETY: as in `put_on_stream`.
            return unsafe { self.routed_copy(stream, Way::Get, place, bytes, pe) };
        }
        Ok(self.copy(stream, to, from, bytes)?)
    }

    /// Changes the one word `signal` on `pe` after the stream's earlier puts: who waits for the change
    /// sees them.
    pub fn signal_on_stream<'a>(
        &self,
        stream: &Stream,
        signal: impl Into<DeviceSymRef<'a, u64>>,
        value: u64,
        op: SignalOp,
        pe: usize,
    ) -> Result<(), DeviceWorldError> {
        let signal = signal.into();
        let at = self.word(signal);
        let to = signal.address(self.heap(), pe);
        if op == SignalOp::Set && self.is_mapped(pe) {
            // SAFETY: the word is mapped here, and freeing it waits for the GPU's work.
            if unsafe { stream.write_word(to, value, size_of::<u64>()) }? {
                return Ok(());
            }
        }
        let add = i32::from(op == SignalOp::Add);
        let kernels = self.kernels();
        // SAFETY: the parameters are (u64*, u64, i32, i32); the word is symmetric and `pe` exists.
        unsafe { kernels.launch(&kernels.signal, (1, 1), stream, (at, value, add, pe as i32)) }
    }

    /// Holds the stream's later work back until this PE's one word `signal` compares with `value` as
    /// asked.
    pub fn signal_wait_on_stream<'a>(
        &self,
        stream: &Stream,
        signal: impl Into<DeviceSymRef<'a, u64>>,
        how: Cmp,
        value: u64,
    ) -> Result<(), DeviceWorldError> {
        let at = self.word(signal.into());
        self.may_wait()?;
        let how = match how {
            Cmp::Eq => Comparison::Eq,
            Cmp::Ne => Comparison::Ne,
            Cmp::Gt => Comparison::Gt,
            Cmp::Ge => Comparison::Ge,
            Cmp::Lt => Comparison::Lt,
            Cmp::Le => Comparison::Le,
        } as i32;
        let kernels = self.kernels();
        // SAFETY: the parameters are (const u64*, i32, u64).
        unsafe { kernels.launch(&kernels.signal_wait, (1, 1), stream, (at, how, value)) }
    }

    /// Completes the puts before it in every PE's stream and meets the team.
    pub fn barrier_on_stream(
        &self,
        stream: &Stream,
        team: &DeviceTeam,
    ) -> Result<(), DeviceWorldError> {
        self.meet_on_stream(stream, team, &self.kernels().barrier)
    }

    /// Meets the team.
    pub fn sync_on_stream(
        &self,
        stream: &Stream,
        team: &DeviceTeam,
    ) -> Result<(), DeviceWorldError> {
        self.meet_on_stream(stream, team, &self.kernels().sync)
    }

    /// `source` of the team's rank `root` to `dest` on every PE, the root included. Both have the same
    /// length. Panics if the team has no such rank.
    pub fn broadcast_on_stream<'a, 'b, T: Pod>(
        &self,
        stream: &Stream,
        team: &DeviceTeam,
        dest: impl Into<DeviceSymRef<'a, T>>,
        source: impl Into<DeviceSymRef<'b, T>>,
        root: usize,
    ) -> Result<(), DeviceWorldError> {
        let (dest, source) = (dest.into(), source.into());
        same_length(dest.len(), source.len());
        assert!(
            root < team.n_pes(),
            "rank {root} of a team of {}",
            team.n_pes()
        );
        let n = source.len();
        self.move_on_stream(
            stream,
            team,
            &self.kernels().broadcast,
            (dest, source, n),
            Collective::Broadcast { root },
        )
    }

    /// Every PE's `source`, in rank order, to `dest` on every PE; `dest` is as long as all sources.
    pub fn fcollect_on_stream<'a, 'b, T: Pod>(
        &self,
        stream: &Stream,
        team: &DeviceTeam,
        dest: impl Into<DeviceSymRef<'a, T>>,
        source: impl Into<DeviceSymRef<'b, T>>,
    ) -> Result<(), DeviceWorldError> {
        let (dest, source) = (dest.into(), source.into());
        // Saturating: no destination is that long.
        same_length(dest.len(), source.len().saturating_mul(team.n_pes()));
        let n = source.len();
        let kernels = &self.kernels().fcollect;
        self.move_on_stream(
            stream,
            team,
            kernels,
            (dest, source, n),
            Collective::Fcollect,
        )
    }

    /// Block `j` of rank `i`'s `source` to block `i` of rank `j`'s `dest`: both are one block per PE of
    /// the team, all of one length.
    pub fn alltoall_on_stream<'a, 'b, T: Pod>(
        &self,
        stream: &Stream,
        team: &DeviceTeam,
        dest: impl Into<DeviceSymRef<'a, T>>,
        source: impl Into<DeviceSymRef<'b, T>>,
    ) -> Result<(), DeviceWorldError> {
        let (dest, source) = (dest.into(), source.into());
        same_length(dest.len(), source.len());
        let n = source.len() / team.n_pes();
        same_length(dest.len(), n * team.n_pes());
        let kernels = &self.kernels().alltoall;
        let collective = Collective::Alltoall;
        self.move_on_stream(stream, team, kernels, (dest, source, n), collective)
    }

    /// The PEs' `source` combined element by element in rank order, in `dest` on every PE: the same
    /// bits everywhere, unless [`use_nccl`](Self::use_nccl) was called. `op` is one of
    /// [`crosswarp_shmem::op`]; integers wrap. `dest` and `source` have the same length and may be the
    /// same.
    pub fn reduce_on_stream<'a, 'b, T: DeviceNumber, O: ReduceOp<T>>(
        &self,
        stream: &Stream,
        team: &DeviceTeam,
        dest: impl Into<DeviceSymRef<'a, T>>,
        source: impl Into<DeviceSymRef<'b, T>>,
        _op: O,
    ) -> Result<(), DeviceWorldError> {
        let (dest, source) = (dest.into(), source.into());
        same_length(dest.len(), source.len());
        let n = source.len();
        let pair = &self.kernels().reduce[T::CODE - 1];
        let function = match self.blocks_of_units(team, n * size_of::<T>()) {
            Some(_) => &pair.block,
            None => &pair.grid,
        };
        let places = [dest, source].map(|view| view.place(self.heap()));
        let payload = (n, size_of::<T>());
        let collective = Collective::Reduce {
            type_code: T::CODE,
            op: code::<T, O>(),
        };
        self.collective_on_stream(stream, team, function, places, payload, collective)
    }

    /// [`reduce_on_stream`](Self::reduce_on_stream) with [`op::Sum`].
    pub fn sum_on_stream<'a, 'b, T: DeviceNumber>(
        &self,
        stream: &Stream,
        team: &DeviceTeam,
        dest: impl Into<DeviceSymRef<'a, T>>,
        source: impl Into<DeviceSymRef<'b, T>>,
    ) -> Result<(), DeviceWorldError>
    where
        op::Sum: ReduceOp<T>,
    {
        self.reduce_on_stream(stream, team, dest, source, op::Sum)
    }

    fn meet_on_stream(
        &self,
        stream: &Stream,
        team: &DeviceTeam,
        function: &Function,
    ) -> Result<(), DeviceWorldError> {
        team.check(self.heap());
        self.may_wait()?;
        // SAFETY: the parameter is a team, of this world.
        unsafe {
            self.kernels()
                .launch(function, (1, MEETING), stream, (team,))
        }
    }

    /// `n` elements per PE, as the widest units that fit.
    fn move_on_stream<T: Pod>(
        &self,
        stream: &Stream,
        team: &DeviceTeam,
        kernels: &Move,
        (dest, source, n): (DeviceSymRef<'_, T>, DeviceSymRef<'_, T>, usize),
        collective: Collective,
    ) -> Result<(), DeviceWorldError> {
        let bytes = n * size_of::<T>();
        let places = [dest, source].map(|view| view.place(self.heap()));
        let (index, size) = unit(bytes, places);
        let (function, size) = match bytes <= SMALL_BYTES {
            true => (&kernels.block[index], size),
            false => (&kernels.grid, 1),
        };
        let payload = (bytes / size, size);
        self.collective_on_stream(stream, team, function, places, payload, collective)
    }

    /// How many blocks make a reduction of `bytes` in units; `None` if it is one of a grid's.
    fn blocks_of_units(&self, team: &DeviceTeam, bytes: usize) -> Option<u32> {
        let most = match team.n_pes() {
            1 => 1,
            _ if !self.is_of_one_host() => 1,
            _ => team.unit_blocks().min(self.kernels().blocks as usize),
        };
        let blocks = bytes.div_ceil(SMALL_BYTES).max(1);
        (blocks <= most).then_some(blocks as u32)
    }

    /// Launches a collective's kernel, or lets NCCL run it if that was asked for, on `n` elements of
    /// `size` bytes per PE at two heap offsets.
    fn collective_on_stream(
        &self,
        stream: &Stream,
        team: &DeviceTeam,
        function: &Function,
        places: [usize; 2],
        (n, size): (usize, usize),
        collective: Collective,
    ) -> Result<(), DeviceWorldError> {
        team.check(self.heap());
        self.may_wait()?;
        let kernels = self.kernels();
        if n == 0 {
            let word = collective.word();
            // SAFETY: the parameters are (team, u64).
            return unsafe { kernels.launch(&kernels.nothing, (1, MEETING), stream, (team, word)) };
        }
        let bytes = n * size;
        // All PEs come to the same number.
        let (part, in_units) = match collective {
            Collective::Reduce { .. } => (bytes / team.n_pes(), self.blocks_of_units(team, bytes)),
            _ => (bytes, (bytes <= SMALL_BYTES).then_some(1)),
        };
        let blocks = match in_units {
            Some(blocks) => blocks,
            None if !self.is_of_one_host() => kernels.blocks,
            // Of what each block moves there should be some.
            None => part.div_ceil(PART_BYTES).clamp(1, kernels.blocks as usize) as u32,
        };
        let me = self.pe().my_pe();
        let [dest, source] = places.map(|offset| self.heap().address(offset, me));
        if let Some(nccl) = self.nccl_for(team, bytes) {
            // SAFETY: parts of this PE's heap with the lengths that the collective asks for, by the
            // callers; freeing them waits for the GPU's work.
            let started = unsafe { nccl.start(stream, collective, [dest, source], (n, size)) };
            if let Some(outcome) = started {
                return Ok(outcome?);
            }
        }
        let root_or_op = match collective {
            Collective::Broadcast { root } => root as i32,
            Collective::Reduce { op, .. } => op,
            Collective::Fcollect | Collective::Alltoall => 0,
        };
        let grid = self.heap().address(team.grid(), me);
        let words = match in_units {
            Some(_) => team.unit_scratches(self.multiprocessors()),
            None => team.block_words(self.multiprocessors()),
        };
        let words = self.heap().address(words, me);
        let args = (team, grid, words, dest, source, n as u64, root_or_op);
        // SAFETY: the parameters are (team, grid_state*, u64*, T*, const T*, u64, i32). The views have the
        // lengths that the collective asks for, by the callers; the grid state and the words have room
        // for a block per SM, the scratches for as many as there are in units.
        unsafe { kernels.launch(function, (blocks, STREAM_THREADS), stream, args) }
    }

    /// The address of the one word of a view.
    fn word(&self, signal: DeviceSymRef<'_, u64>) -> u64 {
        assert!(signal.len() == 1, "a signal of {} words", signal.len());
        signal.address(self.heap(), self.pe().my_pe())
    }

    fn copy(&self, stream: &Stream, to: u64, from: u64, bytes: usize) -> Result<(), CudaError> {
        if bytes == 0 {
            return Ok(());
        }
        self.device().bind()?;
        // SAFETY: both are device memory of that many bytes, mapped here, which outlives the copy:
        // freeing it waits for the GPU's work.
        unsafe { cu!(cuMemcpyAsync(to, from, bytes, stream.handle())) }
    }

    /// Processes that share a GPU can not wait for one another; every PE sees this alike.
    fn may_wait(&self) -> Result<(), DeviceWorldError> {
        match (self.pe().kind(), self.shared_gpu()) {
            (WorldKind::Processes, Some((pe, other))) if !self.processes_may_share => {
                Err(DeviceWorldError::SharedByProcesses { pe, other })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_divide_sizes_and_places() {
        assert_eq!(unit(16, [256, 8]), (2, 8));
        assert_eq!(unit(16, [256, 4]), (1, 4));
        assert_eq!(unit(12, [256, 8]), (1, 4));
        assert_eq!(unit(2, [256, 8]), (0, 1));
        assert_eq!(unit(8, [0, 3]), (0, 1));
    }
}
