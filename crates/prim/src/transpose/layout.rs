//! Where the elements of a batch of matrices lie, and what can be wrong with that.

use crosswarp_shmem::{AllocError, CollectiveError};

/// A batch of equally shaped row-major matrices in one array.
///
/// Element (row, column) of matrix `b` has index `b * batch_stride + row * leading_dimension + column`.
///
/// ```
/// use crosswarp_prim::Layout;
///
/// let packed = Layout::new(3, 5);
/// assert_eq!((packed.leading_dimension, packed.batch), (5, 1));
/// let padded = packed.with_leading_dimension(8).with_batch(2);
/// assert_eq!(padded.batch_stride, 3 * 8);
/// assert_eq!(padded.transposed(), Layout::new(5, 3).with_batch(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Rows of each matrix.
    pub rows: usize,
    /// Columns of each matrix.
    pub columns: usize,
    /// Elements from the start of a row to the start of the next; at least `columns`.
    pub leading_dimension: usize,
    /// Number of matrices.
    pub batch: usize,
    /// Elements from the start of a matrix to the start of the next; matrices do not overlap.
    pub batch_stride: usize,
}

impl Layout {
    /// One matrix without gaps.
    #[must_use]
    pub const fn new(rows: usize, columns: usize) -> Self {
        Self {
            rows,
            columns,
            leading_dimension: columns,
            batch: 1,
            batch_stride: rows.saturating_mul(columns),
        }
    }

    /// The same shape with rows `leading_dimension` elements apart, and matrices right behind one
    /// another.
    #[must_use]
    pub const fn with_leading_dimension(self, leading_dimension: usize) -> Self {
        Self {
            leading_dimension,
            batch_stride: self.rows.saturating_mul(leading_dimension),
            ..self
        }
    }

    /// The same for `batch` matrices.
    #[must_use]
    pub const fn with_batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    /// The same with matrices `batch_stride` elements apart.
    #[must_use]
    pub const fn with_batch_stride(self, batch_stride: usize) -> Self {
        Self {
            batch_stride,
            ..self
        }
    }

    /// The transposed matrices, without gaps.
    #[must_use]
    pub const fn transposed(self) -> Self {
        Self::new(self.columns, self.rows).with_batch(self.batch)
    }

    /// Number of elements of all matrices, gaps not counted; `None` if there is no such number.
    #[must_use]
    pub const fn elements(&self) -> Option<usize> {
        match self.rows.checked_mul(self.columns) {
            Some(matrix) => matrix.checked_mul(self.batch),
            None => None,
        }
    }

    /// Checks that the matrices do not overlap, and returns the length of the array from the first
    /// element to the last.
    ///
    /// # Errors
    /// [`TransposeError::LeadingDimension`], [`TransposeError::BatchStride`],
    /// [`TransposeError::TooLarge`].
    pub fn span(&self) -> Result<usize, TransposeError> {
        let Self {
            rows,
            columns,
            leading_dimension,
            batch,
            batch_stride,
        } = *self;
        if leading_dimension < columns && rows > 1 {
            return Err(TransposeError::LeadingDimension {
                leading_dimension,
                columns,
            });
        }
        if rows == 0 || columns == 0 || batch == 0 {
            return Ok(0);
        }
        let matrix = (rows - 1)
            .checked_mul(leading_dimension)
            .and_then(|last| last.checked_add(columns))
            .ok_or(TransposeError::TooLarge)?;
        if batch_stride < matrix && batch > 1 {
            return Err(TransposeError::BatchStride {
                batch_stride,
                matrix,
            });
        }
        (batch - 1)
            .checked_mul(batch_stride)
            .and_then(|last| last.checked_add(matrix))
            .ok_or(TransposeError::TooLarge)
    }

    /// Bytes from one row to the next, of matrices that were checked. The leading dimension of a single row
    /// means nothing and may be any.
    pub(crate) fn row_bytes(&self, element: usize) -> usize {
        match self.rows {
            0 | 1 => self.columns * element,
            _ => self.leading_dimension * element,
        }
    }

    /// Checks that an array of `len` elements of `element` bytes holds the matrices.
    pub(crate) fn check(
        &self,
        what: &'static str,
        len: usize,
        element: usize,
    ) -> Result<(), TransposeError> {
        let needed = self.span()?;
        if needed
            .checked_mul(element)
            .is_none_or(|bytes| isize::try_from(bytes).is_err())
        {
            return Err(TransposeError::TooLarge);
        }
        if len < needed {
            return Err(TransposeError::Length { what, needed, len });
        }
        Ok(())
    }
}

/// Checks a transposition out of place.
pub(crate) fn check(
    element: usize,
    input: (usize, &Layout),
    output: (usize, &Layout),
) -> Result<(), TransposeError> {
    check_element(element)?;
    input.1.check("input", input.0, element)?;
    output.1.check("output", output.0, element)?;
    let (from, to) = (input.1, output.1);
    if (from.rows, from.columns, from.batch) != (to.columns, to.rows, to.batch) {
        return Err(TransposeError::Shape {
            input: [from.batch, from.rows, from.columns],
            output: [to.batch, to.rows, to.columns],
        });
    }
    Ok(())
}

/// Checks a transposition in place.
pub(crate) fn check_in_place(
    element: usize,
    len: usize,
    layout: &Layout,
) -> Result<(), TransposeError> {
    check_element(element)?;
    layout.check("array", len, element)?;
    if layout.rows != layout.columns {
        return Err(TransposeError::NotSquare {
            rows: layout.rows,
            columns: layout.columns,
        });
    }
    Ok(())
}

pub(crate) fn check_element(bytes: usize) -> Result<(), TransposeError> {
    match bytes {
        1 | 2 | 4 | 8 | 16 => Ok(()),
        _ => Err(TransposeError::ElementSize { bytes }),
    }
}

/// A transposition that can not be made; nothing has been written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransposeError {
    /// Elements of a size without a kernel.
    #[error("elements of {bytes} bytes can not be transposed; 1, 2, 4, 8 and 16 can")]
    ElementSize {
        /// Bytes of an element.
        bytes: usize,
    },
    /// Rows that overlap.
    #[error("leading dimension {leading_dimension} is smaller than the {columns} columns")]
    LeadingDimension {
        /// Elements between the starts of rows.
        leading_dimension: usize,
        /// Columns of a matrix.
        columns: usize,
    },
    /// Matrices that overlap.
    #[error("batch stride {batch_stride} is smaller than a matrix, {matrix} elements")]
    BatchStride {
        /// Elements between the starts of matrices.
        batch_stride: usize,
        /// Elements from the first of a matrix to its last.
        matrix: usize,
    },
    /// More elements than can be addressed.
    #[error("the matrices have more elements than can be addressed")]
    TooLarge,
    /// An array that is too short.
    #[error("the {what} has {len} elements, its layout needs {needed}")]
    Length {
        /// `input`, `output`, `array`.
        what: &'static str,
        /// Elements the layout needs.
        needed: usize,
        /// Elements there are.
        len: usize,
    },
    /// Shapes that do not go together.
    #[error(
        "input of (matrices, rows, columns) {input:?} and output of {output:?}: rows and columns \
         must be exchanged, the number of matrices equal"
    )]
    Shape {
        /// Matrices, rows, columns of the input.
        input: [usize; 3],
        /// The same of the output.
        output: [usize; 3],
    },
    /// In place, and not square.
    #[error("{rows} x {columns} can not be transposed in place: only square matrices can")]
    NotSquare {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// Buffers that share memory.
    #[error("input and output overlap")]
    Overlap,
    /// A part of a distributed matrix that is too short.
    #[error("PE {pe}'s {what} has {len} elements, its part of the matrix has {needed}")]
    Part {
        /// The first PE whose part is too short.
        pe: usize,
        /// `input` or `output`.
        what: &'static str,
        /// Elements of its part.
        needed: usize,
        /// Elements there are.
        len: usize,
    },
    /// PEs with different matrices.
    #[error("PE 0 transposes {rows} x {columns}, but PE {pe} {other_rows} x {other_columns}")]
    Mismatch {
        /// Rows on PE 0.
        rows: usize,
        /// Columns on PE 0.
        columns: usize,
        /// The first PE that has another matrix.
        pe: usize,
        /// Its rows.
        other_rows: usize,
        /// Its columns.
        other_columns: usize,
    },
    /// No symmetric memory for the exchange.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// A collective of the team failed.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}
