//! Order of what the host gives to the library's own stream.
#![allow(unsafe_code)] // C's functions: the caller promises what NVSHMEM asks of the arguments

use crate::on::On;
use crate::state::world;

/// One stream, so what is given to it keeps its order; what goes to another host, too.
pub(crate) unsafe fn fence() {}

/// Completes what was given to the library's own stream.
pub(crate) unsafe fn quiet() {
    if let Some(gpu) = world().and_then(|world| world.opened_gpu()) {
        let _ = On::Host("nvshmem_quiet").said(gpu.quiet());
    }
}

/// A stream's puts are complete when what follows them in the stream begins, but those to other hosts, which the stream then
/// waits for; those of the library's own are waited for.
pub(crate) unsafe fn quiet_on(on: On) {
    let _ = on.give(|gpu, stream| {
        let given = gpu.world.quiet_on_stream(stream);
        given.map_err(|error| error.to_string())?;
        match stream.is_capturing() {
            // No other stream may be asked meanwhile, and what a graph will do is not under way yet.
            Ok(true) => Ok(()),
            _ => gpu.wait(),
        }
    });
}
