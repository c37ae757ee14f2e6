//! How many connections each client address has open.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// The open connections of each address: at most as many addresses as connections.
#[derive(Debug, Default)]
pub(crate) struct Crowd(Mutex<HashMap<IpAddr, usize>>);

/// Whom an address stands for: of IPv6 a client commonly has 2^64 (RFC 6177).
fn client(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(network.into())
        }
        address => address,
    }
}

impl Crowd {
    /// Lets a connection in, unless its client has as many as it may.
    pub(super) fn enter(&self, peer: IpAddr, most: usize) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.entry(client(peer)).or_default();
        let enters = *open < most;
        *open += usize::from(enters);
        enters
    }

    /// Lets one go that was let in.
    pub(super) fn leave(&self, peer: IpAddr) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&client(peer)) {
            *count -= 1;
            if *count == 0 {
                open.remove(&client(peer));
            }
        }
    }
}

/// Lets a connection go however it ends.
pub(super) struct Guest<'c>(pub(super) &'c Crowd, pub(super) IpAddr);

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_room() {
        let crowd = Crowd::default();
        let [one, same, other] =
            ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"].map(|address| address.parse().unwrap());
        assert!(crowd.enter(one, 2) && crowd.enter(same, 2) && !crowd.enter(one, 2) && crowd.enter(other, 2));
        crowd.leave(same);
        assert!(crowd.enter(one, 2));
        [one, one, other].into_iter().for_each(|address| crowd.leave(address));
        assert!(crowd.0.lock().unwrap().is_empty());
        let [four, mapped] = ["10.0.0.1", "::ffff:10.0.0.1"].map(|address| address.parse().unwrap());
        assert!(crowd.enter(four, 1) && !crowd.enter(mapped, 1));
    }
}
