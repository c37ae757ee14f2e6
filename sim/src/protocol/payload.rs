//! The shapes of AAP payloads (AAP digest, section d), the same for every contract but for members that a contract's
//! [`Features`] switch on.

use super::contract::{Contract, Features};
use super::format::Format;
use super::shape::{AMOUNT, COUNT, Field, Record, Shape, TEXT, TEXTS, formatted, list, text};
use super::skill::Skill;

/// Words for the sale condition of a unit on offer.
pub const SALE_CONDITIONS: &[&str] = &["new", "used", "cpo"];
/// Words for the wear of a trade-in.
pub const WEAR_CONDITIONS: &[&str] = &["excellent", "good", "fair", "poor"];
/// The statuses in which a unit is listed.
pub const LISTED_STATUSES: &[&str] = &["available", "intransit", "pending"];
/// The statuses of a unit that a dealer keeps: those of a listing, and that of a unit which is listed no more.
pub const STOCK_STATUSES: &[&str] = &["available", "intransit", "pending", "sold"];
/// Classes of unit.
pub const VEHICLE_TYPES: &[&str] = &["car", "motorcycle", "trailer", "rv", "other"];
/// The fields a search can be ordered by.
pub const SORT_FIELDS: &[&str] =
    &["price", "list_price", "msrp", "mileage", "year", "make", "model", "stock", "updated_at"];
/// The same where prices differ by region (1.0); no listing of ours has such a price, so all of them tie.
const REGIONAL_SORT_FIELDS: &[&str] = &[
    "price",
    "list_price",
    "offered_price",
    "msrp",
    "mileage",
    "year",
    "make",
    "model",
    "stock",
    "updated_at",
];
/// Channels that a consent can allow.
pub const CHANNELS: &[&str] = &["email", "phone", "sms"];
/// The greatest `pagination.limit` a request may carry.
pub const MAX_REQUEST_LIMIT: i64 = 1000;

const URI: Shape = formatted(Format::Uri);
const URIS: Shape = list(&URI);
const DATE_TIME: Shape = formatted(Format::DateTime);
const VIN: Shape = formatted(Format::Vin);
const E164: Shape = formatted(Format::E164);
const YEAR: Shape = Shape::Integer { min: 1900, max: 2100 };
const NOTE: Shape = text(0, 2000, Format::Any);

const fn record(fields: &'static [Field]) -> Record {
    Record { fields, open: false, any_of: &[] }
}

const FEE: Record =
    record(&[Field::required("name", &text(1, 120, Format::NonBlank)), Field::required("amount", &COUNT)]);
const FEES: Shape = Shape::List { items: &Shape::Record(&FEE), min: 0, max: usize::MAX, unique: true };

const ADDRESS: Record = record(&[
    Field::optional("country", &TEXT),
    Field::optional("state", &TEXT),
    Field::optional("city", &TEXT),
    Field::optional("address_line_1", &TEXT),
    Field::optional("address_line_2", &TEXT),
    Field::optional("zip", &TEXT),
]);

/// A member that came with the classes of unit.
const fn of_classes(name: &'static str, shape: &'static Shape) -> Field {
    Field::optional(name, shape).only_with(|features| features.vehicle_classes)
}

/// Members of Vehicle (d.5). The object is open: members that are not listed are allowed everywhere.
const fn vehicle(condition: &'static Shape, status: Field) -> [Field; 34] {
    [
        of_classes("vehicle_type", &Shape::Enum(VEHICLE_TYPES)),
        Field::optional("vin", &VIN),
        Field::optional("year", &YEAR),
        Field::optional("make", &TEXT),
        Field::optional("model", &TEXT),
        Field::optional("trim", &TEXT),
        Field::optional("condition", condition),
        status,
        Field::optional("rooftop", &Shape::OrNull(&TEXT)),
        Field::optional("msrp", &COUNT),
        Field::optional("price", &COUNT),
        Field::optional("list_price", &COUNT),
        Field::optional("fees", &FEES).only_with(|features| features.fees),
        Field::optional("stock", &TEXT),
        Field::optional("dealer_id", &TEXT),
        Field::optional("vehicle_id", &TEXT),
        Field::optional("mileage", &COUNT),
        Field::optional("body", &TEXT),
        Field::optional("transmission", &TEXT),
        Field::optional("driveline", &TEXT),
        Field::optional("engine", &TEXT),
        of_classes("displacement_cc", &COUNT),
        Field::optional("fuel", &TEXT),
        Field::optional("city_mpg", &COUNT),
        Field::optional("highway_mpg", &COUNT),
        Field::optional("electric_range_mi", &AMOUNT),
        of_classes("battery_kwh", &AMOUNT),
        of_classes("motor_power_hp", &AMOUNT),
        of_classes("dc_fast_charge", &Shape::Boolean),
        of_classes("charge_port", &Shape::OrNull(&TEXT)),
        Field::optional("exterior_color", &TEXT),
        Field::optional("interior_color", &TEXT),
        Field::optional("features", &TEXTS),
        Field::optional("photos", &URIS),
    ]
}

const ATTRIBUTES: Shape = Shape::Map(&Shape::Attribute);
const DATE: Shape = formatted(Format::Date);
/// The rest of Vehicle's members, beside those that the context narrows.
const VEHICLE_REST: [Field; 8] = [
    Field::optional("offered_price", &COUNT).only_with(|features| features.regional_price),
    Field::optional("zip", &formatted(Format::Zip)).only_with(|features| features.regional_price),
    Field::optional("vdp_url", &URI),
    Field::optional("description", &TEXT),
    Field::optional("notes", &TEXT),
    of_classes("other_attributes", &ATTRIBUTES),
    Field::optional("inventory_date", &DATE),
    Field::optional("updated_at", &DATE_TIME),
];

const fn join(head: [Field; 34], tail: [Field; 8]) -> [Field; 42] {
    let mut all = [tail[0]; 42];
    let mut at = 0;
    while at < 42 {
        all[at] = if at < 34 { head[at] } else { tail[at - 34] };
        at += 1;
    }
    all
}

const STATUS: Field = Field::optional("status", &Shape::Enum(LISTED_STATUSES));
const LISTED: Field = Field::required("status", &Shape::Enum(LISTED_STATUSES));
const KEPT: Field = Field::required("status", &Shape::Enum(STOCK_STATUSES));

static INTEREST: [Field; 42] = join(vehicle(&Shape::Enum(SALE_CONDITIONS), STATUS), VEHICLE_REST);
static TRADE_IN: [Field; 42] = join(vehicle(&Shape::Enum(WEAR_CONDITIONS), STATUS), VEHICLE_REST);
static LISTING: [Field; 42] = join(vehicle(&Shape::Enum(SALE_CONDITIONS), LISTED), VEHICLE_REST);
static STOCK: [Field; 42] = join(vehicle(&Shape::Enum(SALE_CONDITIONS), KEPT), VEHICLE_REST);

static INTEREST_RECORD: Record = Record { fields: &INTEREST, open: true, any_of: &[] };
static TRADE_IN_RECORD: Record = Record { fields: &TRADE_IN, open: true, any_of: &[] };
static LISTING_RECORD: Record = Record { fields: &LISTING, open: true, any_of: &[] };
static STOCK_RECORD: Record = Record { fields: &STOCK, open: true, any_of: &["vin", "stock", "vehicle_id"] };

static INTEREST_SHAPE: Shape = Shape::Record(&INTEREST_RECORD);
static TRADE_IN_SHAPE: Shape = Shape::Record(&TRADE_IN_RECORD);
/// A Vehicle as search and detail list it: with a status, and a sale condition.
pub static LISTING_SHAPE: Shape = Shape::Record(&LISTING_RECORD);
/// A Vehicle in a stock file: a listing that may be sold, and that has one of the identifiers by which a skill can ask
/// for it.
pub static STOCK_SHAPE: Shape = Shape::Record(&STOCK_RECORD);

const FILTERS: Record = record(&[
    Field::optional("make", &TEXTS),
    Field::optional("model", &TEXTS),
    Field::optional("trim", &TEXTS),
    Field::optional("condition", &list(&Shape::Enum(SALE_CONDITIONS))),
    of_classes("vehicle_type", &list(&Shape::Enum(VEHICLE_TYPES))),
    Field::optional("status", &list(&Shape::Enum(LISTED_STATUSES)))
        .only_with(|features| features.status_filter),
    Field::optional("transmission", &TEXTS),
    Field::optional("fuel", &TEXTS),
    of_classes("electric_range_mi_min", &COUNT),
    of_classes("electric_range_mi_max", &COUNT),
    of_classes("dc_fast_charge", &Shape::Boolean),
    of_classes("charge_port", &TEXTS),
    Field::optional("driveline", &TEXTS),
    Field::optional("body", &TEXTS),
    of_classes("displacement_cc_min", &COUNT),
    of_classes("displacement_cc_max", &COUNT),
    Field::optional("exterior_color", &TEXTS),
    Field::optional("interior_color", &TEXTS),
    Field::optional("rooftops", &TEXTS),
    Field::optional("year_min", &YEAR),
    Field::optional("year_max", &YEAR),
    Field::optional("price_min", &COUNT),
    Field::optional("price_max", &COUNT),
    Field::optional("mileage_max", &COUNT),
    Field::optional("vin", &VIN),
    Field::optional("stock", &TEXT),
    Field::optional("query", &text(0, 200, Format::Any)),
]);

const PAGINATION: Record = record(&[
    Field::optional("skip", &COUNT),
    Field::optional("limit", &Shape::Integer { min: 1, max: MAX_REQUEST_LIMIT }),
]);

const SORT: Record = record(&[
    Field::required("field", &Shape::Enum(SORT_FIELDS)).only_with(|features| !features.regional_price),
    Field::required("field", &Shape::Enum(REGIONAL_SORT_FIELDS))
        .only_with(|features| features.regional_price),
    Field::required("order", &Shape::Enum(&["asc", "desc"])),
]);

const PRIVACY: Record = record(&[Field::optional("anonymous", &Shape::Boolean)]);

const CUSTOMER: Record = Record {
    fields: &[
        Field::required("first_name", &TEXT),
        Field::required("last_name", &TEXT),
        Field::optional("email", &formatted(Format::Email)),
        Field::optional("phone", &E164),
        Field::optional("preferred_contact", &Shape::Enum(&["email", "phone", "sms", "any"])),
        Field::optional("address", &Shape::Record(&ADDRESS)),
    ],
    open: false,
    any_of: &["email", "phone"],
};

/// The agent as contract 1.0 names it, in the lead and in the consent alike.
const AGENT_AS_TEXT: Field = Field::required("source_agent", &text(1, usize::MAX, Format::Any))
    .only_with(|features| features.agent_as_text);

const CONSENT: Record = record(&[
    Field::required("granted_at", &DATE_TIME),
    Field::required(
        "allowed_channels",
        &Shape::List { items: &Shape::Enum(CHANNELS), min: 1, max: usize::MAX, unique: true },
    ),
    Field::required("consent_text", &text(1, usize::MAX, Format::Any)),
    AGENT_AS_TEXT,
    Field::required(
        "scope",
        &Shape::List { items: &Shape::Enum(&["lead_submission"]), min: 1, max: 1, unique: true },
    ),
    Field::optional("expires_at", &DATE_TIME),
]);

const APPOINTMENT: Record = record(&[
    Field::required("appointment_type", &Shape::Enum(&["sales", "service", "test_drive", "trade_in"])),
    Field::optional("appointment_at", &DATE_TIME),
    Field::optional("duration_minutes", &Shape::Integer { min: 15, max: i64::MAX }),
    Field::optional("notes", &NOTE),
]);

const SOURCE_AGENT: Record = record(&[
    Field::required("name", &text(1, usize::MAX, Format::Any)),
    Field::optional("url", &URI),
    Field::optional("agent_card_url", &URI),
]);

static DEALER_INFORMATION_REQUEST: Record =
    record(&[Field::required("type", &Shape::Const("dealer.information.request"))]);

static FACETS_REQUEST: Record = record(&[
    Field::required("type", &Shape::Const("inventory.facets.request")),
    Field::optional("filters", &Shape::Record(&FILTERS)),
]);

static SEARCH_REQUEST: Record = record(&[
    Field::required("type", &Shape::Const("inventory.search.request")),
    Field::optional("filters", &Shape::Record(&FILTERS)),
    Field::optional("pagination", &Shape::Record(&PAGINATION)),
    Field::optional("sort", &Shape::Record(&SORT)),
    Field::optional("privacy", &Shape::Record(&PRIVACY)),
]);

static VEHICLE_REQUEST: Record = Record {
    fields: &[
        Field::required("type", &Shape::Const("inventory.vehicle.request")),
        Field::optional("vin", &VIN),
        Field::optional("stock", &TEXT),
        Field::optional("vehicle_id", &TEXT),
    ],
    open: false,
    any_of: &["vin", "stock", "vehicle_id"],
};

static LEAD_REQUEST: Record = record(&[
    Field::required("type", &Shape::Const("lead.submit.request")),
    Field::required("customer", &Shape::Record(&CUSTOMER)),
    Field::required("consent", &Shape::Record(&CONSENT)),
    Field::optional("vehicle_of_interest", &INTEREST_SHAPE),
    Field::optional("trade_in", &TRADE_IN_SHAPE),
    Field::optional("appointment", &Shape::Record(&APPOINTMENT)),
    Field::optional("message", &text(0, 4000, Format::Any)),
    AGENT_AS_TEXT,
    Field::required("source_agent", &Shape::Record(&SOURCE_AGENT))
        .only_with(|features| !features.agent_as_text),
    Field::optional("submitted_at", &DATE_TIME),
    Field::optional("idempotency_key", &text(1, 128, Format::Any)),
]);

/// The shape of a skill's request payload.
pub fn request(skill: Skill) -> &'static Shape {
    static SHAPES: [Shape; 5] = [
        Shape::Record(&DEALER_INFORMATION_REQUEST),
        Shape::Record(&FACETS_REQUEST),
        Shape::Record(&SEARCH_REQUEST),
        Shape::Record(&VEHICLE_REQUEST),
        Shape::Record(&LEAD_REQUEST),
    ];
    &SHAPES[skill as usize]
}

const NAMED_VALUE: Record = record(&[Field::optional("name", &TEXT), Field::required("value", &TEXT)]);
const CLOCK_TIME: Shape = formatted(Format::HourMinute);
const HOURS: Record = record(&[Field::required("open", &CLOCK_TIME), Field::required("close", &CLOCK_TIME)]);
const DAY_HOURS: Shape = Shape::OrNull(&Shape::Record(&HOURS));
const WEEK: Record = record(&[
    Field::optional("monday", &DAY_HOURS),
    Field::optional("tuesday", &DAY_HOURS),
    Field::optional("wednesday", &DAY_HOURS),
    Field::optional("thursday", &DAY_HOURS),
    Field::optional("friday", &DAY_HOURS),
    Field::optional("saturday", &DAY_HOURS),
    Field::optional("sunday", &DAY_HOURS),
]);
const GEO: Record = record(&[
    Field::required("latitude", &Shape::Number { min: -90.0, max: 90.0 }),
    Field::required("longitude", &Shape::Number { min: -180.0, max: 180.0 }),
]);
const SCHEDULE: Record =
    record(&[Field::optional("name", &TEXT), Field::required("value", &Shape::Record(&WEEK))]);
const ROOFTOP: Record = record(&[
    Field::required("name", &TEXT),
    Field::optional("legal_name", &TEXT),
    Field::optional("website", &URI),
    Field::optional("geo", &Shape::Record(&GEO)),
    Field::optional("emails", &list(&Shape::Record(&NAMED_VALUE))),
    Field::optional("phones", &list(&Shape::Record(&NAMED_VALUE))),
    Field::optional("address", &Shape::Record(&ADDRESS)),
    Field::optional("schedules", &list(&Shape::Record(&SCHEDULE))),
    Field::optional("timezone", &TEXT),
    Field::optional("notes", &TEXT),
    Field::optional("fees", &FEES).only_with(|features| features.fees),
    Field::optional("capabilities", &TEXTS),
]);
const DEALER_INFORMATION: Record = record(&[
    Field::required("name", &TEXT),
    Field::optional("welcome_message", &TEXT),
    Field::required(
        "rooftops",
        &Shape::List { items: &Shape::Record(&ROOFTOP), min: 1, max: usize::MAX, unique: false },
    ),
]);

/// The value of a term facet is a string or an integer; `Attribute` would say more than that, so replies are held to
/// any value here and the counts are checked by the tests of the inventory.
const TERM: Record = record(&[Field::required("value", &Shape::Any), Field::required("count", &COUNT)]);
const TERMS: Shape = list(&Shape::Record(&TERM));
const ANY_NUMBER: Shape = Shape::Number { min: f64::NEG_INFINITY, max: f64::INFINITY };
const RANGE: Shape =
    Shape::Record(&record(&[Field::required("min", &ANY_NUMBER), Field::required("max", &ANY_NUMBER)]));

/// The keys of Facets, in the order of the specification (d.3).
static FACETS: Record = record(&[
    Field::optional("makes", &TERMS),
    Field::optional("models", &TERMS),
    Field::optional("trims", &TERMS),
    Field::optional("years", &TERMS),
    Field::optional("conditions", &TERMS),
    Field::optional("transmissions", &TERMS),
    Field::optional("fuels", &TERMS),
    of_classes("dc_fast_charge", &TERMS),
    of_classes("charge_ports", &TERMS),
    Field::optional("drivelines", &TERMS),
    Field::optional("bodies", &TERMS),
    of_classes("vehicle_types", &TERMS),
    Field::optional("exterior_colors", &TERMS),
    Field::optional("interior_colors", &TERMS),
    Field::optional("rooftops", &TERMS),
    Field::optional("statuses", &TERMS),
    Field::optional("price_range", &RANGE),
    Field::optional("mileage_range", &RANGE),
    Field::optional("year_range", &RANGE),
    of_classes("displacement_cc_range", &RANGE),
    of_classes("electric_range_mi_range", &RANGE),
]);

static FACETS_SHAPE: Shape = Shape::Record(&FACETS);

/// Whether the Facets of a contract with these features have a key.
pub fn knows_facet(name: &str, features: &Features) -> bool {
    FACETS.fields.iter().any(|field| field.name == name && (field.known)(features))
}

/// The members of a listing that came with later contracts than the one with these features. Vehicle is open, so that a
/// dealer could send them; one that serves the older contract has never heard of them.
pub fn later_members(features: &Features) -> Vec<&'static str> {
    let newest = &Contract::NEWEST.features;
    let later = |field: &&Field| (field.known)(newest) && !(field.known)(features);
    LISTING.iter().filter(later).map(|field| field.name).collect()
}

const LEAD_RECEIPT: Record = record(&[
    Field::required("lead_id", &TEXT),
    Field::required("status", &Shape::Enum(&["received", "duplicate", "rejected"])),
    Field::optional(
        "appointment",
        &Shape::Record(&record(&[
            Field::required("appointment_id", &TEXT),
            Field::required("status", &Shape::Enum(&["requested", "proposed", "confirmed", "rejected"])),
            Field::optional("confirmed_at", &DATE_TIME),
            Field::optional(
                "proposed_times",
                &Shape::List { items: &DATE_TIME, min: 1, max: usize::MAX, unique: false },
            ),
        ])),
    ),
    Field::optional(
        "dealer",
        &Shape::Record(&record(&[Field::optional("name", &TEXT), Field::optional("phone", &E164)])),
    ),
]);

static LISTINGS_SHAPE: Shape = list(&LISTING_SHAPE);
static SEARCH_RESULT: Record = record(&[
    Field::required("total", &COUNT),
    Field::optional("skip", &COUNT),
    Field::optional("limit", &COUNT),
    Field::required("vehicles", &LISTINGS_SHAPE),
    Field::optional("facets", &FACETS_SHAPE),
]);

macro_rules! response {
    ($type:literal, $data:expr) => {{
        static RESPONSE: Record = record(&[
            Field::required("type", &Shape::Const($type)),
            Field::required("data", $data),
            Field::optional("message", &NOTE),
        ]);
        Shape::Record(&RESPONSE)
    }};
}

/// The shape of a skill's response payload.
pub fn response(skill: Skill) -> &'static Shape {
    static SHAPES: [Shape; 5] = [
        response!("dealer.information.response", &Shape::Record(&DEALER_INFORMATION)),
        response!("inventory.facets.response", &FACETS_SHAPE),
        response!("inventory.search.response", &Shape::Record(&SEARCH_RESULT)),
        response!("inventory.vehicle.response", &LISTING_SHAPE),
        response!("lead.submit.response", &Shape::Record(&LEAD_RECEIPT)),
    ];
    &SHAPES[skill as usize]
}
