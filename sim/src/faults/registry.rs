//! Every effect there is, in one fixed order: the catalogue, the grammar and the tests walk this list.

use std::sync::LazyLock;

use super::effect::EffectInfo;
use super::effects;

static REGISTRY: LazyLock<Vec<&'static EffectInfo>> =
    LazyLock::new(|| effects::FAMILIES.iter().flat_map(|family| family.iter()).collect());

/// All effects, family by family.
///
/// ```
/// use dealer_sim::faults::registry;
/// assert!(registry().iter().any(|effect| effect.name == "reset_after_commit"));
/// ```
pub fn registry() -> &'static [&'static EffectInfo] {
    &REGISTRY
}

/// The effect of this name.
pub fn find(name: &str) -> Option<&'static EffectInfo> {
    registry().iter().copied().find(|effect| effect.name == name)
}
