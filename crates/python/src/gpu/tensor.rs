//! Reductions and transposes of torch's tensors the short way: what a call needs of torch is asked from here, without a step in Python.
//!
//! It serves the common case, a C-contiguous tensor of a known type, and gives everything else to the Python side. What
//! torch is asked for are attributes and methods of its documented interface, and the current stream, as that side asks.

use crosswarp::prim::{DType, Op};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::error::Failure;
use crate::gpu::queue::{Place, check_fork};
use crate::gpu::reduce::{Task, element_type, enqueue};
use crate::gpu::transpose;
use crate::run::guarded;

/// What is known of torch.
pub struct Torch {
    tensor: Py<PyType>,
    /// The layout of dense tensors.
    strided: Py<PyAny>,
    /// The handle of a GPU's current stream.
    stream: Py<PyAny>,
    empty_strided: Py<PyAny>,
    types: Vec<Type>,
}

/// An element type.
pub struct Type {
    torch: Py<PyAny>,
    pub dtype: DType,
    /// By operation: the type of its results and their bytes, if torch has it.
    results: Vec<Option<(Py<PyAny>, usize)>>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

/// Torch's type, our number, and for each operation torch's type of results and its bytes.
type Known = (Py<PyAny>, usize, Vec<Option<(Py<PyAny>, usize)>>);

/// Says what torch's things are, once it has been imported.
#[pyfunction]
fn know_torch(
    py: Python<'_>,
    tensor: Py<PyType>,
    strided: Py<PyAny>,
    stream: Py<PyAny>,
    empty_strided: Py<PyAny>,
    types: Vec<Known>,
) -> PyResult<()> {
    guarded(move || {
        let types = types.into_iter().map(|(torch, number, results)| {
            Ok(Type {
                torch,
                dtype: element_type(number)?,
                results,
            })
        });
        let torch = Torch {
            tensor,
            strided,
            stream,
            empty_strided,
            types: types.collect::<Result<_, Failure>>()?,
        };
        // The first one stays: there is one torch in a process.
        let _ = TORCH.set(py, torch);
        Ok(())
    })
}

/// A dense, C-contiguous tensor on a GPU.
pub struct Tensor<'a> {
    pub kind: &'a Type,
    /// The type's number among those that torch has.
    pub number: usize,
    pub address: usize,
    pub place: Place,
}

/// What is known of torch, and the tensor, if it is one that is served here.
pub fn known<'a>(
    py: Python<'a>,
    x: &Bound<'_, PyAny>,
) -> PyResult<Option<(&'a Torch, Tensor<'a>)>> {
    let Some(torch) = TORCH.get(py) else {
        return Ok(None);
    };
    Ok(torch.find(py, x)?.map(|tensor| (torch, tensor)))
}

impl Torch {
    fn find<'a>(&'a self, py: Python<'_>, x: &Bound<'_, PyAny>) -> PyResult<Option<Tensor<'a>>> {
        // A subclass may be anything.
        if !x.get_type().is(&self.tensor) || !x.getattr(intern!(py, "is_cuda"))?.is_truthy()? {
            return Ok(None);
        }
        check_fork()?;
        let is = |method| PyResult::Ok(x.call_method0(method)?.is_truthy()?);
        if !x.getattr(intern!(py, "layout"))?.is(&self.strided)
            || is(intern!(py, "is_neg"))?
            || !is(intern!(py, "is_contiguous"))?
        {
            return Ok(None);
        }
        let dtype = x.getattr(intern!(py, "dtype"))?;
        let number = self.types.iter().position(|kind| dtype.is(&kind.torch));
        let Some(number) = number else {
            return Ok(None);
        };
        let device = x.call_method0(intern!(py, "get_device"))?;
        let stream = self.stream.bind(py).call1((&device,))?.extract()?;
        Ok(Some(Tensor {
            kind: &self.types[number],
            number,
            address: x.call_method0(intern!(py, "data_ptr"))?.extract()?,
            place: Place::of_stream(device.extract()?, stream),
        }))
    }

    /// Elements of a tensor.
    pub fn len(x: &Bound<'_, PyAny>) -> PyResult<usize> {
        x.call_method0(intern!(x.py(), "numel"))?.extract()
    }

    /// The type of indices and counts.
    pub fn indices(&self) -> Result<&Py<PyAny>, Failure> {
        let found = self
            .types
            .first()
            .and_then(|kind| kind.results[Op::Argmax as usize].as_ref());
        let (found, _) = found.ok_or_else(|| Failure::Internal("torch without int64".into()))?;
        Ok(found)
    }

    /// A new tensor of this shape beside `x`.
    pub fn empty<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        shape: &[usize],
        dtype: &Py<PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, usize)> {
        let mut strides = vec![1; shape.len()];
        for k in (1..shape.len()).rev() {
            strides[k - 1] = strides[k] * shape[k].max(1);
        }
        let how = PyDict::new(py);
        how.set_item(intern!(py, "dtype"), dtype)?;
        how.set_item(intern!(py, "device"), x.getattr(intern!(py, "device"))?)?;
        let sizes = (PyTuple::new(py, shape)?, PyTuple::new(py, strides)?);
        let made = self.empty_strided.bind(py).call(sizes, Some(&how))?;
        let address = made.call_method0(intern!(py, "data_ptr"))?.extract()?;
        Ok((made, address))
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
    let shape: Vec<usize> = x.getattr(intern!(py, "shape"))?.extract()?;
    let len = shape.iter().product();
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
    let (made, out) = torch.empty(py, x, &kept, kind)?;
    let task = Task {
        op,
        inputs: [tensor.address; 2],
        len,
        shape: matrices,
        out,
        out_bytes: *out_bytes,
    };
    enqueue(py, tensor.place, tensor.kind.dtype, &task)?;
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
    let n = Torch::len(x)?;
    if left.place != right.place || left.number != right.number || n != Torch::len(y)? || n == 0 {
        return Ok(None);
    }
    let Some((kind, out_bytes)) = &left.kind.results[Op::Dot as usize] else {
        return Ok(None);
    };
    let (made, out) = torch.empty(py, x, &[], kind)?;
    let task = Task {
        op: Op::Dot,
        inputs: [left.address, right.address],
        len: n,
        shape: [0; 3],
        out,
        out_bytes: *out_bytes,
    };
    enqueue(py, left.place, left.kind.dtype, &task)?;
    Ok(Some(made.unbind()))
}

/// The transposes of a tensor's matrices, or `None`, as [`reduce`].
#[pyfunction]
fn transposed_tensor(py: Python<'_>, x: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    guarded(move || {
        let Some((torch, tensor)) = known(py, x)? else {
            return Ok(None);
        };
        let mut shape: Vec<usize> = x.getattr(intern!(py, "shape"))?.extract()?;
        let &[ref outer @ .., rows, columns] = &shape[..] else {
            return Ok(None);
        };
        let matrices = [outer.iter().product(), rows, columns];
        if matrices.contains(&0) {
            return Ok(None);
        }
        let last = shape.len() - 1;
        shape.swap(last - 1, last);
        let (made, output) = torch.empty(py, x, &shape, &tensor.kind.torch)?;
        let size = tensor.kind.dtype.size();
        transpose::enqueue(py, tensor.place, size, [tensor.address, output], matrices)?;
        Ok(Some(made.unbind()))
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(know_torch, module)?)?;
    module.add_function(wrap_pyfunction!(transposed_tensor, module)?)
}
