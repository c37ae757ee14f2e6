//! The five skills of the Auto Agent Protocol and the names each goes by on the wire (AAP digest, section c).

/// One of the five AAP skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Skill {
    /// `dealer.information`: the group and its rooftops.
    DealerInformation,
    /// `inventory.facets`: counts and ranges over the stock.
    InventoryFacets,
    /// `inventory.search`: filtered, sorted, paged listings.
    InventorySearch,
    /// `inventory.vehicle`: one listing in full.
    InventoryVehicle,
    /// `lead.submit`: a consented lead.
    LeadSubmit,
}

/// The wire names of one skill.
struct Names {
    id: &'static str,
    request_type: &'static str,
    response_type: &'static str,
    request_media_type: &'static str,
    response_media_type: &'static str,
    stem: &'static str,
}

macro_rules! names {
    ($id:literal, $stem:literal) => {
        Names {
            id: $id,
            request_type: concat!($id, ".request"),
            response_type: concat!($id, ".response"),
            request_media_type: concat!("application/vnd.autoagent.", $stem, "-request+json"),
            response_media_type: concat!("application/vnd.autoagent.", $stem, "-response+json"),
            stem: $stem,
        }
    };
}

// `inventory.vehicle` travels under the stem `vehicle-detail`: the one skill whose media type is not its id.
static NAMES: [Names; 5] = [
    names!("dealer.information", "dealer-information"),
    names!("inventory.facets", "inventory-facets"),
    names!("inventory.search", "inventory-search"),
    names!("inventory.vehicle", "vehicle-detail"),
    names!("lead.submit", "lead-submit"),
];

impl Skill {
    /// All skills, in the order in which a card lists them.
    pub const ALL: [Skill; 5] = [
        Skill::DealerInformation,
        Skill::InventoryFacets,
        Skill::InventorySearch,
        Skill::InventoryVehicle,
        Skill::LeadSubmit,
    ];

    fn names(self) -> &'static Names {
        &NAMES[self as usize]
    }

    /// The skill id, such as `inventory.search`.
    pub fn id(self) -> &'static str {
        self.names().id
    }

    /// The `type` of a request payload, such as `inventory.search.request`.
    pub fn request_type(self) -> &'static str {
        self.names().request_type
    }

    /// The `type` of a response payload, such as `inventory.search.response`.
    pub fn response_type(self) -> &'static str {
        self.names().response_type
    }

    /// The media type of a request part.
    pub fn request_media_type(self) -> &'static str {
        self.names().request_media_type
    }

    /// The media type of a response part.
    pub fn response_media_type(self) -> &'static str {
        self.names().response_media_type
    }

    /// The stem of media types and schema file names, such as `vehicle-detail`.
    pub fn stem(self) -> &'static str {
        self.names().stem
    }

    /// The skill with this id.
    ///
    /// ```
    /// use dealer_sim::protocol::Skill;
    /// assert_eq!(Skill::from_id("lead.submit"), Some(Skill::LeadSubmit));
    /// assert_eq!(Skill::from_id("lead.retract"), None);
    /// ```
    pub fn from_id(id: &str) -> Option<Skill> {
        Skill::ALL.into_iter().find(|skill| skill.id() == id)
    }

    /// The skill whose request payload has this `type`.
    pub fn from_request_type(request_type: &str) -> Option<Skill> {
        Skill::from_id(request_type.strip_suffix(".request")?)
    }
}

impl std::fmt::Display for Skill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id())
    }
}

impl std::str::FromStr for Skill {
    type Err = UnknownSkill;

    fn from_str(id: &str) -> Result<Skill, UnknownSkill> {
        Skill::from_id(id).ok_or_else(|| UnknownSkill { id: id.to_owned() })
    }
}

/// A skill id that AAP does not define.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown skill {id:?}; the skills are dealer.information, inventory.facets, inventory.search, \
     inventory.vehicle and lead.submit"
)]
pub struct UnknownSkill {
    /// What was given.
    pub id: String,
}
