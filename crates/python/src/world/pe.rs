//! A PE's verbs for Python.

use crosswarp::SignalOp;
use crosswarp::prim::DType;
use pyo3::prelude::*;

use crate::error::Failure;
use crate::run::guarded;
use crate::world::atomic::{atomic, comparison, integer, of_integer};
use crate::world::collective::Collective;
use crate::world::place::{any, equal};
use crate::world::team::Part;
use crate::world::verb::verb;
use crate::world::{Block, Handle};

/// Bytes from which copying is worth giving the interpreter's lock away.
const LARGE: usize = 32 << 10;

fn signal_op(name: &str) -> Result<SignalOp, Failure> {
    match name {
        "set" => Ok(SignalOp::Set),
        "add" => Ok(SignalOp::Add),
        _ => Err(Failure::Input(format!(
            "a signal is 'set' or 'add', not {name:?}"
        ))),
    }
}

#[pymethods]
impl Handle {
    #[getter]
    fn my_pe(&self) -> PyResult<usize> {
        guarded(move || Ok(self.pe()?.my_pe()))
    }

    #[getter]
    fn n_pes(&self) -> PyResult<usize> {
        guarded(move || Ok(self.pe()?.n_pes()))
    }

    /// Symmetric memory of zeros. Collective.
    fn allocate(slf: &Bound<'_, Self>, bytes: usize) -> PyResult<Block> {
        guarded(move || {
            let pe = slf.get().pe()?;
            let address = verb(slf.py(), pe, || {
                let start = pe.raw().calloc(bytes, 1)?;
                Ok(start.expose_provenance())
            })?;
            Ok(Block {
                address,
                bytes,
                _handle: slf.clone().unbind(),
            })
        })
    }

    /// Collective.
    fn free(&self, py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<()> {
        guarded(move || {
            let (pe, place) = (self.pe()?, self.symmetric(array)?);
            verb(py, pe, || Ok(pe.raw().free(place.at())?))
        })
    }

    fn put(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        pe: usize,
    ) -> PyResult<()> {
        guarded(move || {
            let (me, dest, source) = (self.other(pe)?, self.symmetric(dest)?, any(source)?);
            equal(source.bytes(), dest.bytes(), "the source")?;
            let put = || {
                // SAFETY: `dest` is symmetric; `source` is an array's memory, which the call keeps alive.
                unsafe { me.raw().put(dest.at(), source.at(), source.bytes(), pe) };
                Ok(())
            };
            if source.bytes() < LARGE {
                return Ok(guarded(put)?);
            }
            verb(py, me, put)
        })
    }

    fn get(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        pe: usize,
    ) -> PyResult<()> {
        guarded(move || {
            let (me, dest, source) = (self.other(pe)?, any(dest)?, self.symmetric(source)?);
            equal(dest.bytes(), source.bytes(), "the destination")?;
            let get = || {
                // SAFETY: as for `put`.
                unsafe { me.raw().get(dest.at(), source.at(), source.bytes(), pe) };
                Ok(())
            };
            if source.bytes() < LARGE {
                return Ok(guarded(get)?);
            }
            verb(py, me, get)
        })
    }

    #[allow(clippy::too_many_arguments)] // those of the operation
    fn put_signal(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        signal: &Bound<'_, PyAny>,
        value: u64,
        op: &str,
        pe: usize,
    ) -> PyResult<()> {
        guarded(move || {
            let (me, dest, source) = (self.other(pe)?, self.symmetric(dest)?, any(source)?);
            equal(source.bytes(), dest.bytes(), "the source")?;
            let (signal, op) = (self.word(signal)?, signal_op(op)?);
            if signal.dtype != DType::U64 {
                return Err(
                    Failure::Type(format!("a signal is a uint64, not {}", signal.dtype)).into(),
                );
            }
            let bytes = source.bytes();
            verb(py, me, || {
                // SAFETY: as for `put`; the signal is a symmetric, aligned word.
                unsafe {
                    me.raw()
                        .put_signal(dest.at(), source.at(), bytes, signal.at(), value, op, pe);
                }
                Ok(())
            })
        })
    }

    fn wait_until(
        &self,
        py: Python<'_>,
        word: &Bound<'_, PyAny>,
        cmp: &str,
        value: i128,
    ) -> PyResult<i128> {
        guarded(move || {
            let (me, word, cmp) = (self.pe()?, self.word(word)?, comparison(cmp)?);
            verb(py, me, || {
                of_integer!(word.dtype, T => {
                    let value = integer::<T>(value, word.dtype)?;
                    // SAFETY: a symmetric, aligned word.
                    let seen = unsafe { me.raw().wait_until(word.at::<T>(), cmp, value) };
                    Ok(seen?.into())
                })
            })
        })
    }

    fn test(&self, word: &Bound<'_, PyAny>, cmp: &str, value: i128) -> PyResult<bool> {
        guarded(move || {
            let (me, word, cmp) = (self.pe()?, self.word(word)?, comparison(cmp)?);
            let test = || {
                of_integer!(word.dtype, T => {
                    let value = integer::<T>(value, word.dtype)?;
                    // SAFETY: a symmetric, aligned word.
                    Ok(unsafe { me.raw().test(word.at::<T>(), cmp, value) })
                })
            };
            Ok(guarded(test)?)
        })
    }

    /// An atomic on another PE's word; the value before.
    fn atomic(
        &self,
        py: Python<'_>,
        what: &str,
        word: &Bound<'_, PyAny>,
        value: i128,
        expected: i128,
        pe: usize,
    ) -> PyResult<i128> {
        guarded(move || {
            let (me, word) = (self.other(pe)?, self.word(word)?);
            verb(py, me, || {
                of_integer!(word.dtype, T => {
                    let (value, expected) = (integer::<T>(value, word.dtype)?, integer::<T>(expected, word.dtype)?);
                    atomic(me, what, word.at::<T>(), value, expected, pe).map(i128::from)
                })
            })
        })
    }

    fn fence(&self, py: Python<'_>) -> PyResult<()> {
        guarded(move || {
            let me = self.pe()?;
            verb(py, me, || {
                me.fence()
                    .map_err(|error| Failure::World(error.to_string()))
            })
        })
    }

    fn quiet(&self, py: Python<'_>) -> PyResult<()> {
        guarded(move || {
            let me = self.pe()?;
            verb(py, me, || {
                me.quiet()
                    .map_err(|error| Failure::World(error.to_string()))
            })
        })
    }

    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        guarded(move || {
            let me = self.pe()?;
            verb(py, me, || Ok(me.barrier()?))
        })
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        guarded(move || {
            let me = self.pe()?;
            verb(py, me, || Ok(me.sync()?))
        })
    }

    fn broadcast(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        root: usize,
    ) -> PyResult<()> {
        guarded(move || {
            self.on(
                py,
                &self.pe()?.world(),
                Collective::Broadcast(root),
                dest,
                source,
            )
        })
    }

    fn fcollect(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        guarded(move || self.on(py, &self.pe()?.world(), Collective::Fcollect, dest, source))
    }

    fn alltoall(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        guarded(move || self.on(py, &self.pe()?.world(), Collective::Alltoall, dest, source))
    }

    fn reduce(
        &self,
        py: Python<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        what: &str,
    ) -> PyResult<()> {
        guarded(move || {
            self.on(
                py,
                &self.pe()?.world(),
                Collective::Reduce(what),
                dest,
                source,
            )
        })
    }

    fn split_strided(
        slf: &Bound<'_, Self>,
        start: usize,
        stride: isize,
        size: usize,
    ) -> PyResult<Option<Part>> {
        guarded(move || {
            let me = slf.get().pe()?;
            let team = verb(slf.py(), me, || {
                Ok(me.world().split_strided(start, stride, size)?)
            })?;
            Ok(team.map(|team| Part::new(slf, team)))
        })
    }

    fn split_2d(slf: &Bound<'_, Self>, row: usize) -> PyResult<(Part, Part)> {
        guarded(move || {
            let me = slf.get().pe()?;
            let (rows, columns) = verb(slf.py(), me, || Ok(me.world().split_2d(row)?))?;
            Ok((Part::new(slf, rows), Part::new(slf, columns)))
        })
    }
}
