//! What the host does with single words and strided elements, in stream order.
#![allow(unsafe_code)] // Launches kernels.

use super::{Failure, Gpu};
use crate::driver::ContextGuard;
use crosswarp_cuda::{Buffer, DeviceWorld, Function, Launch, Source, Stream};
use std::sync::{Mutex, PoisonError};

/// Single words and strided elements in stream order.
pub(crate) const WORDS: Source<'static> =
    Source::new("words.cu", include_str!("../../kernels/words.cu"));

/// What one block puts sooner than a copy engine and a kernel behind it.
const BYTES_OF_ONE_BLOCK: usize = 64 << 10;

/// Kernels for single words and strided elements, and what they need.
pub(super) struct Words {
    store: Function,
    signal: Function,
    put_signal: Function,
    wait: Function,
    wait_all: Function,
    strided: Function,
    atomic: Function,
    /// Where a fetched word arrives, and whose turn it is.
    out: Buffer<u64>,
    turn: Mutex<()>,
}

impl Words {
    /// Loads the kernels; the first PE compiles, the others then find it in the cache.
    pub(super) fn load(world: &DeviceWorld<'static>, stream: &Stream) -> Result<Self, Failure> {
        let module = world.load(&WORDS)?;
        let function = |name| -> Result<Function, Failure> {
            let function = module.function(name)?;
            Launch::new(&function).load()?;
            Ok(function)
        };
        Ok(Self {
            store: function("store")?,
            signal: function("signal")?,
            put_signal: function("put_signal")?,
            wait: function("wait")?,
            wait_all: function("wait_all")?,
            strided: function("strided")?,
            atomic: function("atomic_word")?,
            out: Buffer::zeroed(stream, 1)?,
            turn: Mutex::new(()),
        })
    }
}

impl Gpu {
    /// Stores the low `bytes` of `value` at `address` on `pe`.
    pub(crate) fn store(
        &self,
        stream: &Stream,
        address: u64,
        (value, bytes): (u64, usize),
        pe: i32,
    ) -> Result<(), String> {
        let at = self.remote(address, bytes, pe)?;
        if !self.is_far(pe) {
            // SAFETY: the address was checked, and is mapped here.
            let written = unsafe {
                match bytes {
                    8 => stream.write_word(at, value, bytes),
                    _ => stream.store_word(at, value, bytes),
                }
            };
            if written.map_err(|error| error.to_string())? {
                return Ok(());
            }
        }
        let args = (address, value, bytes as i32, pe);
        // SAFETY: `store(u64, u64, i32, i32)`; the address was checked.
        unsafe { self.launch(&self.words.store, (1, 1), stream, args) }
    }

    /// Changes the signal at `address` on `pe`, after the stream's earlier puts.
    pub(crate) fn signal(
        &self,
        stream: &Stream,
        address: u64,
        (value, adds): (u64, bool),
        pe: i32,
    ) -> Result<(), String> {
        let at = self.remote(address, 8, pe)?;
        let sets = !adds && !self.is_far(pe);
        // SAFETY: the address was checked, and is mapped here.
        if sets && unsafe { stream.write_word(at, value, 8) }.map_err(|error| error.to_string())? {
            return Ok(());
        }
        let args = (address, value, i32::from(adds), pe);
        // SAFETY: `signal(u64*, u64, i32, i32)`; the address was checked.
        unsafe { self.launch(&self.words.signal, (1, 1), stream, args) }
    }

    /// Copies `bytes` from `source` to `dest` on `pe` and changes the signal at `address` there behind them, by one
    /// kernel: a copy engine and a kernel that wait for one another take twice as long. False, and nothing is done, where
    /// that is slower or can't be: many bytes, or ones that lie differently, or a source outside this PE's part, which
    /// kernels may not reach.
    pub(crate) fn put_signal(
        &self,
        stream: &Stream,
        (dest, source, bytes): (u64, u64, usize),
        address: u64,
        (value, adds): (u64, bool),
        pe: i32,
    ) -> Result<bool, String> {
        self.remote(dest, bytes, pe)?;
        self.remote(address, 8, pe)?;
        // Words of 4 bytes at least, or few.
        let fine = bytes > BYTES_OF_ONE_BLOCK / 16 && (dest ^ source) % 4 != 0;
        if bytes > BYTES_OF_ONE_BLOCK || fine || self.remote(source, bytes, self.me as i32).is_err()
        {
            return Ok(false);
        }
        let threads = bytes.div_ceil(16).next_multiple_of(32).clamp(32, 512) as u32;
        let n = bytes as u64;
        let args = (dest, source, n, address, value, i32::from(adds), pe);
        // SAFETY: `put_signal(u8*, const u8*, u64, u64*, u64, i32, i32)`; the addresses were checked.
        unsafe { self.launch(&self.words.put_signal, (1, threads), stream, args) }?;
        Ok(true)
    }

    /// Waits until the word at `address`, whose bytes are `kind` (negative: signed), compares with `than`.
    pub(crate) fn wait_word(
        &self,
        stream: &Stream,
        address: u64,
        (kind, how, than): (i32, i32, u64),
    ) -> Result<(), String> {
        self.may_wait_in(stream)?;
        self.remote(address, kind.unsigned_abs() as usize, self.me as i32)?;
        let args = (address, kind, how, than);
        // SAFETY: `wait(u64, i32, i32, u64)`; the address was checked.
        unsafe { self.launch(&self.words.wait, (1, 1), stream, args) }
    }

    /// The same for `n` words from `address` on, but those with a `status`.
    pub(crate) fn wait_words(
        &self,
        stream: &Stream,
        (address, n, status): (u64, usize, u64),
        (kind, how, than, same): (i32, i32, u64, bool),
    ) -> Result<(), String> {
        self.may_wait_in(stream)?;
        let bytes = (kind.unsigned_abs() as usize).saturating_mul(n);
        self.remote(address, bytes, self.me as i32)?;
        let args = (address, n as u64, status, kind, how, than, i32::from(same));
        // SAFETY: `wait_all(u64, u64, u64, i32, i32, u64, i32)`; status and vector are the program's, as long as it says.
        unsafe { self.launch(&self.words.wait_all, (1, 1), stream, args) }
    }

    /// Copies `n` elements of `bytes`, strided.
    pub(crate) fn strided(
        &self,
        stream: &Stream,
        (dest, dest_stride): (u64, isize),
        (source, source_stride): (u64, isize),
        (n, bytes): (usize, usize),
    ) -> Result<(), String> {
        if n == 0 {
            return Ok(());
        }
        let blocks = n.div_ceil(256).min(64) as u32;
        let args = (
            dest,
            dest_stride as i64,
            source,
            source_stride as i64,
            n as u64,
            bytes as i32,
        );
        // SAFETY: `strided(u64, i64, u64, i64, u64, i32)`; places and lengths are the program's.
        unsafe { self.launch(&self.words.strided, (blocks, 256), stream, args) }
    }

    /// The `bytes` bytes at `address` on `pe`, of another host, behind the stream's earlier work.
    pub(crate) fn fetch(
        &self,
        stream: &Stream,
        address: u64,
        bytes: usize,
        pe: i32,
    ) -> Result<u64, String> {
        let _turn = self
            .words
            .turn
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let place = (self.words.out.address(), bytes);
        // SAFETY: the buffer is of 8 bytes, as the largest number.
        unsafe { self.copy_over_hosts(stream, false, place, (address, bytes), (1, bytes), pe) }?;
        let out = self
            .words
            .out
            .to_vec(stream)
            .map_err(|error| error.to_string())?;
        Ok(out[0])
    }

    /// One atomic operation on the word at `address` on `pe`; what was there before.
    pub(crate) fn atomic(
        &self,
        address: u64,
        bytes: usize,
        (op, value, cond): (i32, u64, u64),
        pe: i32,
    ) -> Result<u64, String> {
        self.remote(address, bytes, pe)?;
        let _turn = self
            .words
            .turn
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.on(None, |stream| {
            let args = (address, bytes as i32, op, value, cond, pe, &self.words.out);
            // SAFETY: `atomic_word(u64, i32, i32, u64, u64, i32, u64*)`; the address was checked.
            unsafe { self.launch(&self.words.atomic, (1, 1), stream, args) }
        })?;
        let _guard = ContextGuard::keep();
        let out = self
            .words
            .out
            .to_vec(&self.stream)
            .map_err(|error| error.to_string())?;
        Ok(out[0])
    }
}
