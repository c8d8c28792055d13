//! Bringing halos up to date.

pub(crate) mod device_put;
mod edges;
pub(crate) mod host_exchange;
pub(crate) mod level_puts;
pub(crate) mod level_rows;
pub(crate) mod put_signal;

pub(crate) use edges::{Place, Rows, image};

/// A way for the outermost rows of each PE to get into the halos of its neighbours.
///
/// `Field` is how the way sees a PE's rows: in host memory, or in a GPU's and in the order of its streams.
///
/// Who calls: every PE that owns rows, `start` and `finish` in turn, all with the same `rows`. It is not collective
/// beyond that: a PE waits for its two neighbours only, at the earliest in `finish`.
///
/// Memory ordering: what a neighbour wrote to its rows before it called `start` is what `finish` brings.
pub(crate) trait HaloExchange<Field> {
    /// What may go wrong.
    type Error;

    /// Sends the outermost `rows` of `field` to the neighbours. They must not change before `finish`.
    fn start(&mut self, field: &Field, rows: Rows) -> Result<(), Self::Error>;

    /// Receives the neighbours' rows. Behind it the halos of `field` are valid to the depth that `start` was told, and
    /// so are the ghosts, if ghosts travelled: when it returns, or, on a GPU, for what is given to the field's stream
    /// from now on.
    fn finish(&mut self, field: &mut Field) -> Result<(), Self::Error>;

    /// Both.
    fn exchange(&mut self, field: &mut Field, rows: Rows) -> Result<(), Self::Error> {
        self.start(field, rows)?;
        self.finish(field)
    }
}
