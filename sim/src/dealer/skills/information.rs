//! `dealer.information`.

use super::open;
use crate::dealer::Dealer;
use crate::protocol::Skill;
use crate::protocol::error::AapError;

pub(super) fn handle(dealer: &Dealer, out: &mut Vec<u8>) -> Result<(), AapError> {
    open(out, Skill::DealerInformation);
    out.extend_from_slice(dealer.information());
    out.push(b'}');
    Ok(())
}
