//! Reductions and transposes of torch's tensors the short way: what a call needs of torch is asked from here, without a
//! step in Python.
//!
//! It serves the common case, a C-contiguous tensor of a known type, of a torch that shows the functions of `exchange`;
//! everything else is for the Python side.

use std::sync::Mutex;

use crosswarp::prim::{DType, Op};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyTuple, PyType};

use crate::error::Failure;
use crate::gpu::exchange::{Exchange, Seen};
use crate::gpu::queue::{Gpu, Place, gpu, lock};
use crate::gpu::reduce::{Task, enqueue};
use crate::gpu::transpose;
use crate::numbers::element_type;
use crate::run::guarded;

/// What is known of torch.
pub struct Torch {
    tensor: Py<PyType>,
    exchange: Exchange,
    types: Vec<Type>,
    makers: Mutex<Vec<Maker>>,
}

/// What makes tensors of a GPU and a type.
struct Maker {
    device: usize,
    torch: Py<PyAny>,
    /// A method for new ones, of a tensor of these.
    new: Py<PyAny>,
}

/// An element type.
pub struct Type {
    torch: Py<PyAny>,
    pub dtype: DType,
    /// DLPack's code and bits.
    code: (u8, u8),
    /// By operation: torch's type of results, and their bytes, if torch has it.
    results: Vec<Option<(Py<PyAny>, usize)>>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

/// Torch's type, our number, DLPack's code and bits, and for each operation torch's type of results and its bytes.
type Known = (Py<PyAny>, usize, (u8, u8), Vec<Option<(Py<PyAny>, usize)>>);

/// Says what torch's things are, once it has been imported: its type of tensors, the capsule of that type's functions, and
/// element types.
#[pyfunction]
fn know_torch(
    py: Python<'_>,
    tensor: Py<PyType>,
    functions: &Bound<'_, PyAny>,
    types: Vec<Known>,
) -> PyResult<()> {
    guarded(move || {
        let functions = functions.cast::<PyCapsule>().ok();
        let Some(exchange) = functions.and_then(Exchange::of) else {
            // Something else, or of another version: torch is asked the long way.
            return Ok(());
        };
        let types = types.into_iter().map(|(torch, number, code, results)| {
            Ok(Type {
                torch,
                dtype: element_type(number)?,
                code,
                results,
            })
        });
        let torch = Torch {
            tensor,
            exchange,
            types: types.collect::<Result<_, Failure>>()?,
            makers: Mutex::default(),
        };
        // The first one stays: there is one torch in a process.
        let _ = TORCH.set(py, torch);
        Ok(())
    })
}

/// A dense, C-contiguous tensor on a GPU.
pub struct Tensor<'a> {
    pub seen: Seen<'a>,
    pub kind: &'a Type,
    /// The type's number among those that torch has.
    pub number: usize,
    pub gpu: &'static Gpu,
    pub place: Place,
}

/// What is known of torch, and the tensor, if it is one that is served here.
pub fn known<'a>(
    py: Python<'a>,
    x: &'a Bound<'_, PyAny>,
) -> PyResult<Option<(&'a Torch, Tensor<'a>)>> {
    let Some(torch) = TORCH.get(py) else {
        return Ok(None);
    };
    Ok(torch.find(py, x)?.map(|tensor| (torch, tensor)))
}

impl Torch {
    fn find<'a>(&'a self, py: Python<'_>, x: &'a Bound<'_, PyAny>) -> PyResult<Option<Tensor<'a>>> {
        // A subclass may be anything.
        if !x.get_type().is(&self.tensor) {
            return Ok(None);
        }
        // SAFETY: rule 1: nobody changes an array that a call works on.
        let Some(seen) = (unsafe { self.exchange.look(x) }) else {
            return Ok(None);
        };
        let number = self.types.iter().position(|kind| kind.code == seen.dtype);
        let (Some(number), true) = (number, seen.is_contiguous()) else {
            return Ok(None);
        };
        // The signs of such a view are not those in memory.
        if x.call_method0(intern!(py, "is_neg"))?.is_truthy()? {
            return Ok(None);
        }
        // Refused after a fork, before torch is asked for what it asks of the GPU.
        let gpu = gpu(seen.device)?;
        let place = Place::of_stream(seen.device, self.exchange.stream(py, seen.device)?);
        Ok(Some(Tensor {
            seen,
            kind: &self.types[number],
            number,
            gpu,
            place,
        }))
    }

    /// The type of indices and counts.
    pub fn indices(&self) -> Result<&Py<PyAny>, Failure> {
        let of_any = self.types.first();
        let found = of_any.and_then(|kind| kind.results[Op::Argmax as usize].as_ref());
        let (found, _) = found.ok_or_else(|| Failure::Internal("torch without int64".into()))?;
        Ok(found)
    }

    /// A tensor's elements as int32; and where they lie.
    pub fn as_int32<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, usize)> {
        let kind = self.types.iter().find(|kind| kind.dtype == DType::I32);
        let kind = kind.ok_or_else(|| Failure::Internal("torch without int32".into()))?;
        let made = x.call_method1(intern!(py, "to"), (&kind.torch,))?;
        let address = self.address(&made)?;
        Ok((made, address))
    }

    /// Where a tensor lies that nobody else has.
    fn address(&self, made: &Bound<'_, PyAny>) -> PyResult<usize> {
        // SAFETY: nobody else has it.
        let seen = unsafe { self.exchange.look(made) };
        let address = seen.map(|seen| seen.address);
        Ok(address.ok_or_else(|| Failure::Internal("a new tensor that is not on a GPU".into()))?)
    }

    /// A new tensor of this shape and type beside `x`, which is on GPU `device`; and where it lies.
    pub fn empty<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        device: usize,
        shape: &[usize],
        dtype: &Py<PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, usize)> {
        let maker = self.maker(py, x, device, dtype)?;
        let mut strides = vec![1; shape.len()];
        for k in (1..shape.len()).rev() {
            strides[k - 1] = strides[k] * shape[k].max(1);
        }
        let made = maker.call1((PyTuple::new(py, shape)?, PyTuple::new(py, strides)?))?;
        let address = self.address(&made)?;
        Ok((made, address))
    }

    /// The method `new_empty_strided` of a tensor of this GPU and type: it takes no other arguments than sizes, and is the
    /// quickest way that torch has.
    fn maker<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        device: usize,
        dtype: &Py<PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let is_it = |maker: &&Maker| maker.device == device && maker.torch.is(dtype);
        if let Some(maker) = lock(&self.makers).iter().find(is_it) {
            return Ok(maker.new.bind(py).clone());
        }
        let how = PyDict::new(py);
        how.set_item(intern!(py, "dtype"), dtype)?;
        let one = x.call_method(intern!(py, "new_empty"), (PyTuple::empty(py),), Some(&how))?;
        let new = one.getattr(intern!(py, "new_empty_strided"))?;
        lock(&self.makers).push(Maker {
            device,
            torch: dtype.clone_ref(py),
            new: new.clone().unbind(),
        });
        Ok(new)
    }
}

/// A reduction of a tensor, or `None` of what is none, or needs more said.
pub fn reduce(
    py: Python<'_>,
    op: Op,
    x: &Bound<'_, PyAny>,
    axis: Option<isize>,
) -> PyResult<Option<Py<PyAny>>> {
    let Some((torch, tensor)) = known(py, x)? else {
        return Ok(None);
    };
    let len = tensor.seen.len();
    let shape = tensor.seen.sizes();
    let ndim = shape.len() as isize;
    let whole = axis.is_none_or(|axis| ndim == 1 && (axis == 0 || axis == -1));
    let (kept, matrices) = if whole {
        (Vec::new(), [0; 3])
    } else {
        let Some(axis) = axis.filter(|axis| (-ndim..ndim).contains(axis)) else {
            return Ok(None);
        };
        let axis = axis.rem_euclid(ndim) as usize;
        let (outer, inner) = (&shape[..axis], &shape[axis + 1..]);
        let [batch, columns]: [usize; 2] = [outer.iter().product(), inner.iter().product()];
        ([outer, inner].concat(), [batch, shape[axis], columns])
    };
    let alone = op == Op::Prod || op == Op::ExactSum && tensor.kind.dtype.is_float();
    if len == 0 || !whole && alone {
        return Ok(None);
    }
    let Some((kind, out_bytes)) = &tensor.kind.results[op as usize] else {
        return Ok(None);
    };
    let (made, out) = torch.empty(py, x, tensor.seen.device, &kept, kind)?;
    let task = Task {
        op,
        inputs: [tensor.seen.address; 2],
        len,
        shape: matrices,
        out,
        out_bytes: *out_bytes,
    };
    enqueue(py, tensor.gpu, tensor.place, tensor.kind.dtype, &task)?;
    Ok(Some(made.unbind()))
}

/// A dot product of two vectors, or `None`, as [`reduce`].
pub fn dot(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
) -> PyResult<Option<Py<PyAny>>> {
    let (Some((torch, left)), Some((_, right))) = (known(py, x)?, known(py, y)?) else {
        return Ok(None);
    };
    let n = left.seen.len();
    if left.place != right.place || left.number != right.number || n != right.seen.len() || n == 0 {
        return Ok(None);
    }
    let Some((kind, out_bytes)) = &left.kind.results[Op::Dot as usize] else {
        return Ok(None);
    };
    let (made, out) = torch.empty(py, x, left.seen.device, &[], kind)?;
    let task = Task {
        op: Op::Dot,
        inputs: [left.seen.address, right.seen.address],
        len: n,
        shape: [0; 3],
        out,
        out_bytes: *out_bytes,
    };
    enqueue(py, left.gpu, left.place, left.kind.dtype, &task)?;
    Ok(Some(made.unbind()))
}

/// The transposes of a tensor's matrices, or `None`, as [`reduce`].
#[pyfunction]
fn transposed_tensor(py: Python<'_>, x: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    guarded(move || {
        let Some((torch, tensor)) = known(py, x)? else {
            return Ok(None);
        };
        let seen = &tensor.seen;
        let mut shape = seen.sizes();
        let &[ref outer @ .., rows, columns] = &shape[..] else {
            return Ok(None);
        };
        let matrices = [outer.iter().product(), rows, columns];
        if matrices.contains(&0) {
            return Ok(None);
        }
        let last = shape.len() - 1;
        shape.swap(last - 1, last);
        let (made, output) = torch.empty(py, x, seen.device, &shape, &tensor.kind.torch)?;
        let size = tensor.kind.dtype.size();
        let (gpu, place) = (tensor.gpu, tensor.place);
        transpose::enqueue(py, gpu, place, size, [seen.address, output], matrices)?;
        Ok(Some(made.unbind()))
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(know_torch, module)?)?;
    module.add_function(wrap_pyfunction!(transposed_tensor, module)?)
}
