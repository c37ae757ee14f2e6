//! The appointment diary: real slots in each rooftop's opening hours and time zone (AAP digest, section f).
//!
//! Only `confirmed` is a booking. A time that cannot be had is answered with the next free ones; only when there is
//! none in the following week is it an error.

use std::collections::HashMap;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};

use crate::share::Share;
use crate::stable::{mix, stable_hash};

/// Minutes of one slot of the diary.
const SLOT_MINUTES: i64 = 30;
const SLOT_SECONDS: i64 = SLOT_MINUTES * 60;
/// A start must lie on this grid to be confirmed as asked.
const START_GRID_SECONDS: i64 = 15 * 60;
/// Least notice a rooftop needs.
const NOTICE_SECONDS: i64 = 60 * 60;
/// Days after the wished time in which alternatives are looked for.
const SEARCH_DAYS: i64 = 7;
/// Alternatives offered at most.
const MAX_PROPOSED: usize = 3;
/// Of the slots this share is taken by customers of the dealer's own, in per cent.
const OWN_LOAD_PERCENT: u64 = 20;
/// Slots booked that are remembered; past ones go first.
const MAX_BOOKED_SLOTS: usize = 100_000;
/// Every dealer stops appointments for two weeks out of sixty days, to take stock: a time in there has no alternative.
const STOCKTAKING_EVERY_DAYS: i64 = 60;
const STOCKTAKING_FROM_DAY: i64 = 40;
const STOCKTAKING_DAYS: i64 = 14;

/// What an appointment is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A consultation.
    Sales,
    /// Maintenance.
    Service,
    /// Driving the vehicle of interest.
    TestDrive,
    /// Appraisal of the trade-in.
    TradeIn,
}

impl Kind {
    /// The kind by its name on the wire.
    pub fn from_name(name: &str) -> Option<Kind> {
        match name {
            "sales" => Some(Kind::Sales),
            "service" => Some(Kind::Service),
            "test_drive" => Some(Kind::TestDrive),
            "trade_in" => Some(Kind::TradeIn),
            _ => None,
        }
    }

    /// Appointments of this kind that a rooftop can hold at once.
    fn capacity(self) -> u32 {
        match self {
            Kind::Sales => 4,
            Kind::Service => 3,
            Kind::TestDrive => 2,
            Kind::TradeIn => 2,
        }
    }

    /// How long one lasts unless the buyer says, in minutes.
    fn usual_minutes(self) -> i64 {
        match self {
            Kind::Sales | Kind::TradeIn => 30,
            Kind::Service | Kind::TestDrive => 60,
        }
    }
}

/// Opening and closing in minutes after midnight, Monday first; `None` is closed.
pub type Week = [Option<(u16, u16)>; 7];

/// A rooftop, as the diary sees it.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// Its E.164 phone number, if it has one.
    pub phone: Option<String>,
    /// Its time zone.
    pub timezone: TimeZone,
    /// When the showroom is open.
    pub sales: Week,
    /// When the workshop is open; `None` where there is none.
    pub service: Option<Week>,
}

/// What a buyer asks for.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// Which rooftop, by index.
    pub place: usize,
    /// What for.
    pub kind: Kind,
    /// When, if said.
    pub at: Option<Timestamp>,
    /// For how long, in minutes, if said.
    pub minutes: Option<i64>,
}

/// What the dealer says to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Somebody will call to find a time.
    Requested,
    /// Booked.
    Confirmed(Timestamp),
    /// Not then, but at one of these times.
    Proposed(Vec<Timestamp>),
    /// Not here at all.
    Rejected,
    /// Not then, and at no other time either.
    Unavailable,
}

/// The diary of one dealer.
#[derive(Debug)]
pub struct Diary {
    seed: u64,
    opened: Date,
    places: Vec<Place>,
    booked: HashMap<(usize, Kind, i64), u32>,
    /// Slots that may be booked.
    most: usize,
    /// Bookings let go to keep the diary bounded.
    pub forgotten: u64,
}

impl Diary {
    /// An empty diary. `opened` is the clock's day at the start, from which stocktaking is counted.
    /// This share of the slots can be booked.
    pub fn new(seed: u64, opened: Date, places: Vec<Place>, share: Share) -> Diary {
        Diary { seed, opened, places, booked: HashMap::new(), most: share.of(MAX_BOOKED_SLOTS), forgotten: 0 }
    }

    /// The rooftops.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Takes out every booking.
    pub fn reset(&mut self) {
        self.booked.clear();
        self.forgotten = 0;
    }

    /// The first rooftop that can hold this kind.
    pub fn place_for(&self, kind: Kind) -> Option<usize> {
        self.places.iter().position(|place| place.hours(kind).is_some())
    }

    /// Answers a wish, without booking anything.
    pub fn answer(&self, wish: Wish, now: Timestamp) -> Answer {
        let Some(place) = self.places.get(wish.place) else { return Answer::Rejected };
        let Some(week) = place.hours(wish.kind) else { return Answer::Rejected };
        let Some(at) = wish.at else { return Answer::Requested };
        let minutes = wish.minutes.unwrap_or_else(|| wish.kind.usual_minutes());
        let earliest = now.as_second() + NOTICE_SECONDS;
        let second = at.as_second();
        let on_grid = second.rem_euclid(START_GRID_SECONDS) == 0 && at.subsec_nanosecond() == 0;
        if on_grid && second >= earliest && self.is_free(wish.place, wish.kind, week, at, minutes) {
            return Answer::Confirmed(at);
        }
        let from = Timestamp::from_second(second.max(earliest)).unwrap_or(now);
        let free = |minutes| {
            self.starts(place, week, from)
                .filter(move |start| self.is_free(wish.place, wish.kind, week, *start, minutes))
        };
        let proposed: Vec<_> = free(minutes).take(MAX_PROPOSED).collect();
        if !proposed.is_empty() {
            Answer::Proposed(proposed)
        } else if free(minutes.min(SLOT_MINUTES)).next().is_some() {
            // There is time, only not so much of it in one piece: a person has to find a way.
            Answer::Requested
        } else {
            Answer::Unavailable
        }
    }

    /// Books what was confirmed.
    pub fn book(&mut self, wish: Wish, at: Timestamp, now: Timestamp) {
        if self.booked.len() >= self.most {
            let present = now.as_second().div_euclid(SLOT_SECONDS);
            self.booked.retain(|(_, _, slot), _| *slot >= present);
            if self.booked.len() >= self.most {
                self.forgotten += self.booked.len() as u64;
                self.booked.clear();
            }
        }
        let minutes = wish.minutes.unwrap_or_else(|| wish.kind.usual_minutes());
        for slot in slots(at, minutes) {
            *self.booked.entry((wish.place, wish.kind, slot)).or_insert(0) += 1;
        }
    }

    /// A time for `kind` that is full but has alternatives, a day or more ahead.
    pub fn busy_slot(&self, kind: Kind, now: Timestamp) -> Option<Timestamp> {
        let place = self.place_for(kind)?;
        let tomorrow = now.checked_add(24.hours()).ok()?;
        let week = self.places[place].hours(kind)?;
        self.starts(&self.places[place], week, tomorrow).find(|start| {
            let wish = Wish { place, kind, at: Some(*start), minutes: None };
            matches!(self.answer(wish, now), Answer::Proposed(_))
        })
    }

    /// A time for `kind` that is full and has no alternative.
    pub fn blocked_slot(&self, kind: Kind, now: Timestamp) -> Option<Timestamp> {
        let place = self.place_for(kind)?;
        let week = self.places[place].hours(kind)?;
        let today = now.to_zoned_datetime(TimeZone::UTC).date();
        let period = days_between(self.opened, today).div_euclid(STOCKTAKING_EVERY_DAYS);
        // The first half of the stocktaking of this period, or of the next when that has passed.
        (period..period + 2).find_map(|period| {
            let first = period * STOCKTAKING_EVERY_DAYS + STOCKTAKING_FROM_DAY + 1;
            let day = self.opened.checked_add(first.days()).ok()?;
            let from = day.at(0, 0, 0, 0).to_zoned_datetime(TimeZone::UTC).ok()?.timestamp();
            if from <= now {
                return None;
            }
            self.starts(&self.places[place], week, from).find(|start| {
                let wish = Wish { place, kind, at: Some(*start), minutes: None };
                self.answer(wish, now) == Answer::Unavailable
            })
        })
    }

    /// Whether every slot from `at` on is open and has room.
    fn is_free(&self, place: usize, kind: Kind, week: &Week, at: Timestamp, minutes: i64) -> bool {
        let local = at.to_zoned_datetime(self.places[place].timezone.clone());
        let Some((open, close)) = week[day_index(local.date().weekday())] else { return false };
        let start = i64::from(local.hour()) * 60 + i64::from(local.minute());
        if start < i64::from(open) || start.saturating_add(minutes) > i64::from(close) {
            return false;
        }
        !self.is_stocktaking(local.date())
            && slots(at, minutes).all(|slot| {
                let taken = self.booked.get(&(place, kind, slot)).copied().unwrap_or(0);
                taken < kind.capacity() && !self.is_taken_by_own_customers(place, kind, slot)
            })
    }

    fn is_taken_by_own_customers(&self, place: usize, kind: Kind, slot: i64) -> bool {
        let place = stable_hash(self.seed, self.places[place].name.as_bytes());
        mix(place ^ mix(kind as u64 ^ mix(slot as u64))) % 100 < OWN_LOAD_PERCENT
    }

    fn is_stocktaking(&self, day: Date) -> bool {
        let day = days_between(self.opened, day).rem_euclid(STOCKTAKING_EVERY_DAYS);
        (STOCKTAKING_FROM_DAY..STOCKTAKING_FROM_DAY + STOCKTAKING_DAYS).contains(&day)
    }

    /// The starts of slots in opening hours, from `from` on, for a week.
    fn starts<'d>(
        &'d self,
        place: &'d Place,
        week: &'d Week,
        from: Timestamp,
    ) -> impl Iterator<Item = Timestamp> + 'd {
        let first_day = from.to_zoned_datetime(place.timezone.clone()).date();
        (0..=SEARCH_DAYS)
            .filter_map(move |days| first_day.checked_add(Span::new().days(days)).ok())
            .filter_map(move |day| week[day_index(day.weekday())].map(|hours| (day, hours)))
            .flat_map(move |(day, (open, close))| {
                (open..close).step_by(SLOT_MINUTES as usize).filter_map(move |minute| {
                    let time = day.at((minute / 60) as i8, (minute % 60) as i8, 0, 0);
                    place.timezone.to_timestamp(time).ok()
                })
            })
            .filter(move |start| *start >= from)
    }
}

impl Place {
    fn hours(&self, kind: Kind) -> Option<&Week> {
        match kind {
            Kind::Service => self.service.as_ref(),
            _ => Some(&self.sales),
        }
    }
}

/// The slots that an appointment touches; one longer than a day touches no more than a day's, since none is open longer.
fn slots(at: Timestamp, minutes: i64) -> impl Iterator<Item = i64> {
    let first = at.as_second().div_euclid(SLOT_SECONDS);
    let last = (at.as_second() + minutes.clamp(1, 24 * 60) * 60 - 1).div_euclid(SLOT_SECONDS);
    first..=last
}

fn day_index(day: Weekday) -> usize {
    day.to_monday_zero_offset() as usize
}

fn days_between(from: Date, to: Date) -> i64 {
    to.duration_since(from).as_secs().div_euclid(86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, zone: &str, service: bool) -> Place {
        let week: Week = std::array::from_fn(|day| (day < 6).then_some((9 * 60, 18 * 60)));
        Place {
            name: name.to_owned(),
            phone: None,
            timezone: TimeZone::get(zone).unwrap(),
            sales: week,
            service: service.then_some(week),
        }
    }

    fn diary(seed: u64) -> Diary {
        let places = vec![place("a", "America/Los_Angeles", false), place("b", "America/New_York", true)];
        Diary::new(seed, "2026-01-01".parse().unwrap(), places, Share::default())
    }

    fn ts(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    const NOW: &str = "2026-01-05T12:00:00Z";

    fn ask(diary: &Diary, at: &str) -> Answer {
        diary.answer(Wish { place: 0, kind: Kind::Sales, at: Some(ts(at)), minutes: Some(30) }, ts(NOW))
    }

    #[test]
    fn hours_are_local() {
        let diary = diary(1);
        // 9 to 18 in Los Angeles is 17 to 2 in UTC; of a week of open slots some are free.
        let free = (0..18)
            .map(|n| ts("2026-01-06T17:00:00Z") + (n * 30).minutes())
            .filter(|at| matches!(ask(&diary, &at.to_string()), Answer::Confirmed(_)))
            .count();
        assert!((8..18).contains(&free), "{free}");
        for closed in
            ["2026-01-06T16:30:00Z", "2026-01-07T02:00:00Z", "2026-01-11T18:00:00Z", "2026-01-01T18:00:00Z"]
        {
            assert!(matches!(ask(&diary, closed), Answer::Proposed(_)), "{closed}");
        }
    }

    #[test]
    fn what_is_proposed_can_be_had() {
        let diary = diary(3);
        let Answer::Proposed(times) = ask(&diary, "2026-01-06T03:07:11Z") else { panic!("nothing proposed") };
        assert_eq!(times.len(), 3);
        for time in times {
            assert_eq!(ask(&diary, &time.to_string()), Answer::Confirmed(time));
        }
    }

    #[test]
    fn a_slot_fills_up() {
        let mut diary = diary(3);
        let Answer::Proposed(times) = ask(&diary, "2026-01-06T03:00:00Z") else { panic!("nothing proposed") };
        let wish = Wish { place: 0, kind: Kind::Sales, at: Some(times[0]), minutes: Some(30) };
        for _ in 0..Kind::Sales.capacity() {
            assert_eq!(diary.answer(wish, ts(NOW)), Answer::Confirmed(times[0]));
            diary.book(wish, times[0], ts(NOW));
        }
        assert!(matches!(diary.answer(wish, ts(NOW)), Answer::Proposed(_)));
        diary.reset();
        assert_eq!(diary.answer(wish, ts(NOW)), Answer::Confirmed(times[0]));
    }

    #[test]
    fn busy_and_blocked_slots_exist_for_every_seed_and_day() {
        for seed in 0..40 {
            let diary = diary(seed);
            for days in [0, 1, 3, 39, 41, 45, 53, 55, 200] {
                let now = ts(NOW) + (days * 24).hours();
                let busy = diary.busy_slot(Kind::Service, now);
                // In the week before and in stocktaking itself there may be no alternative to find.
                if !(33..=49).contains(&days) {
                    assert!(busy.is_some(), "seed {seed} day {days}");
                }
                let blocked = diary.blocked_slot(Kind::Service, now).unwrap();
                let wish = Wish { place: 1, kind: Kind::Service, at: Some(blocked), minutes: None };
                assert_eq!(diary.answer(wish, now), Answer::Unavailable);
                assert!(blocked > now);
            }
        }
    }

    #[test]
    fn a_place_without_a_workshop_rejects_service_and_no_time_is_a_request() {
        let diary = diary(1);
        let wish = Wish { place: 0, kind: Kind::Service, at: Some(ts(NOW)), minutes: None };
        assert_eq!(diary.answer(wish, ts(NOW)), Answer::Rejected);
        assert_eq!(diary.place_for(Kind::Service), Some(1));
        let wish = Wish { kind: Kind::TestDrive, at: None, ..wish };
        assert_eq!(diary.answer(wish, ts(NOW)), Answer::Requested);
        let wish = Wish { at: Some(Timestamp::MAX), minutes: Some(i64::MAX), ..wish };
        assert_eq!(diary.answer(wish, ts(NOW)), Answer::Unavailable);
    }
}
