//! Order of what the host gives to the library's own stream.
#![allow(unsafe_code)] // C's functions: the caller promises what NVSHMEM asks of the arguments

use crate::gpu::Gpu;
use crate::on::On;
use crate::state::world;
use crosswarp_cuda::Stream;

/// One stream, so what is given to it keeps its order; what goes to another host, too.
pub(crate) unsafe fn fence() {}

/// Completes what was given to the library's own stream.
pub(crate) unsafe fn quiet() {
    if let Some(gpu) = world().and_then(|world| world.opened_gpu()) {
        let _ = On::Host("nvshmem_quiet").said(gpu.quiet());
    }
}

/// What was given to the library's own stream has been sent when this returns, so that what is given to `stream` afterwards
/// completes it, as it does what the stream itself has put. (Its work ends when the source of a put to another host was
/// taken; that the bytes are there is for a later quiet to wait for.)
pub(crate) fn send_own(gpu: &Gpu, stream: &Stream) -> Result<(), String> {
    // During a capture no other stream may be asked, and what a graph will do is not under way yet.
    if !gpu.under_way.is_any() || matches!(stream.is_capturing(), Ok(true)) {
        return Ok(());
    }
    gpu.wait()
}

/// A stream's puts are complete when what follows them in the stream begins, but those to other hosts, which the stream then
/// waits for; with those of the library's own, which have to be on their way before.
pub(crate) unsafe fn quiet_on(on: On) {
    let _ = on.give(|gpu, stream| {
        send_own(gpu, stream)?;
        let given = gpu.world.quiet_on_stream(stream);
        given.map_err(|error| error.to_string())
    });
}
