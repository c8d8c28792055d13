//! NCCL for the large collectives of a device world.

use crate::pe::error::DeviceWorldError;
use crate::pe::nccl::communicator::Communicator;
use crate::pe::nccl::library::{Nccl, NcclError, UniqueId, multicast_is_off};
use crate::pe::team::DeviceTeam;
use crate::pe::world::DeviceWorld;

/// NCCL for large collectives.
impl DeviceWorld<'_> {
    /// From now on broadcasts, fcollects and reductions by `Sum` and `Prod`, of integers also by
    /// `Min` and `Max`, in stream order go through NCCL, if they are over [`everyone`](Self::everyone) and
    /// move at least `min_bytes` bytes per PE (of `source`). A second call only changes `min_bytes`.
    /// (Alltoalls gain nothing and stay with the kernels.)
    ///
    /// Collective: all PEs call it with the same number, while no kernel waits for another PE. `1 << 20`
    /// is a good number for programs that broadcast; the other collectives gain nothing (the crate's
    /// README has the figures).
    ///
    /// It is an option because it gives up what the kernels promise: NCCL combines in an order of its
    /// own, so floating-point results are not the bits of the sum in PE order, and may differ between
    /// machines and versions. The world's wait limit does not end NCCL's waits, nor are PEs compared that call
    /// different collectives. NCCL takes device
    /// memory, and the first collective of each kind and size may meet all PEs in the host's call to
    /// connect the GPUs: make it before kernels wait, and before it is recorded into a graph.
    ///
    /// NVLink multicast is never used: NCCL has to be started with `NCCL_NVLS_ENABLE=0` in the
    /// environment.
    ///
    /// Errors: [`DeviceWorldError::Nccl`], on every PE if on any; the kernels are then used as before.
    pub fn use_nccl(&mut self, min_bytes: usize) -> Result<(), DeviceWorldError> {
        if let Some(communicator) = &mut self.nccl {
            communicator.min_bytes = min_bytes;
            return Ok(());
        }
        // The same answer on every PE.
        if let Some((pe, other)) = self.shared_gpu() {
            return Err(NcclError::SharedGpu { pe, other }.into());
        }
        // Who can not join must be known before anybody waits for it inside NCCL.
        let ready = multicast_is_off().and_then(|()| Nccl::get());
        let nccl = self.unless_a_peer_failed(ready)?;
        let mut id = UniqueId([0; 16]);
        let made = match self.pe().my_pe() {
            0 => nccl.unique_id().map(|made| id = made),
            _ => Ok(()),
        };
        self.unless_a_peer_failed(made)?;
        for word in &mut id.0 {
            *word = self.gather(*word)?[0];
        }
        self.unless_a_peer_failed(self.device().bind())?;
        let joined = nccl.join(self.pe().n_pes(), self.pe().my_pe(), id);
        // If a peer has failed the handle is left alone: destroying it could wait for that peer.
        let handle = self.unless_a_peer_failed(joined)?;
        self.nccl = Some(Communicator::new(nccl, self.device(), min_bytes, handle));
        Ok(())
    }

    /// NCCL, if it is to be used for a collective that moves this many bytes.
    pub(crate) fn nccl_for(&self, team: &DeviceTeam, bytes: usize) -> Option<&Communicator> {
        // Other teams of all PEs may be at work in another stream in another order.
        let everyone = team.state().scratch == self.everyone().state().scratch;
        let communicator = self.nccl.as_ref()?;
        (everyone && bytes >= communicator.min_bytes).then_some(communicator)
    }

    /// My outcome if I have failed, else whether a peer has. Collective.
    fn unless_a_peer_failed<T, E: Into<DeviceWorldError>>(
        &self,
        mine: Result<T, E>,
    ) -> Result<T, DeviceWorldError> {
        let well = self.gather(u64::from(mine.is_ok()))?;
        let mine = mine.map_err(Into::into)?;
        match well.iter().position(|&well| well == 0) {
            Some(pe) => Err(NcclError::PeerFailed { pe }.into()),
            None => Ok(mine),
        }
    }
}
