//! The market: what becomes of a vehicle as business days pass. Pure: the fate of a unit up to a day follows from the seed,
//! the unit's number, what it was when it came, and the days themselves; never from how often or in what steps anybody
//! looked. All shares are in ten-thousandths and all arithmetic is whole, so that every machine agrees.

use jiff::civil::Date;

use super::columns::Status;
use super::generate::{is_business_day, seconds_at_start};
use crate::stable::mix;

/// What is drawn apart from each other for one unit and day.
#[derive(Debug, Clone, Copy)]
enum Draw {
    Move = 1,
    Cut,
    Hour,
    Arrivals,
    OneMore,
    OnItsWay,
}

/// The share of listed units that a buyer comes for on a business day, before age, price and class are looked at.
const USUAL: u64 = 150;
/// The share of deals in progress that are closed on a business day, and that fall through.
const CLOSED: u64 = 4_000;
const FELL_THROUGH: u64 = 500;
/// The share of units on their way that arrive on a business day.
const ARRIVES: u64 = 1_000;
/// Units that come in on a business day, of the size of the stock at the start: about what is sold.
const COMES_LEAST: u64 = 80;
const COMES_MOST: u64 = 160;
/// The share of them that are on their way still.
const STILL_ON_ITS_WAY: u64 = 1_200;

/// Ages in days at which a unit that has not been sold gets cheaper, by 1 to [`DEEPEST_CUT`] per cent.
const CUT_AT: [u32; 6] = [30, 45, 60, 75, 90, 120];
const DEEPEST_CUT: u64 = 4;

/// The business days from a start on.
#[derive(Debug, Clone)]
pub(crate) struct Calendar {
    seed: u64,
    start: Date,
    /// The business days that have ended, the first one first: days after the start.
    ended: Vec<u32>,
}

impl Calendar {
    /// The business days of `start..day`. What a dealer does on a day shows from the day after it on, as the stock of a seed
    /// shows nothing of its own day.
    pub(crate) fn new(seed: u64, start: Date, day: Date) -> Calendar {
        let days = std::iter::successors(Some(start), |day| day.tomorrow().ok());
        let ended = (0..)
            .zip(days.take_while(|&other| other < day))
            .filter(|(_, day)| is_business_day(*day))
            .map(|(days, _)| days)
            .collect();
        Calendar { seed, start, ended }
    }

    /// How many business days have ended. They are numbered from 1 on.
    pub(crate) fn count(&self) -> u32 {
        self.ended.len() as u32
    }

    /// Days from the start to a business day.
    fn days_to(&self, number: u32) -> u32 {
        number.checked_sub(1).and_then(|index| self.ended.get(index as usize)).copied().unwrap_or(0)
    }

    /// A business day's date.
    pub(crate) fn date(&self, number: u32) -> Date {
        self.start.checked_add(jiff::Span::new().days(self.days_to(number))).unwrap_or(self.start)
    }

    fn word(&self, unit: u64, day: u32, what: Draw) -> u64 {
        mix(mix(mix(self.seed ^ 0x6d61_726b_6574).wrapping_add(unit))
            .wrapping_add(u64::from(day) << 8 | what as u64))
    }

    /// A number below `bound`.
    fn below(&self, unit: u64, day: u32, what: Draw, bound: u64) -> u64 {
        ((u128::from(self.word(unit, day, what)) * u128::from(bound)) >> 64) as u64
    }

    fn hits(&self, unit: u64, day: u32, what: Draw, share: u64) -> bool {
        self.below(unit, day, what, 10_000) < share
    }

    /// When on a business day the unit's listing was last touched, in seconds since 1970: in the working day between the
    /// coasts, 15:00 to 23:59 UTC.
    pub(crate) fn touched(&self, unit: u64, day: u32) -> u32 {
        seconds_at_start(self.date(day)) + 15 * 3600 + self.below(unit, day, Draw::Hour, 9 * 3600) as u32
    }

    /// The end of the last business day, in seconds since 1970; 0 where there was none.
    pub(crate) fn last_closing(&self) -> u32 {
        if self.ended.is_empty() { 0 } else { seconds_at_start(self.date(self.count())) + 86_400 - 1 }
    }

    /// How many units come in on a business day, for a stock that began with `size`. `dealer` tells dealers of one seed apart.
    pub(crate) fn arrivals(&self, dealer: u64, day: u32, size: u32) -> u32 {
        let share = COMES_LEAST + self.below(dealer, day, Draw::Arrivals, COMES_MOST - COMES_LEAST + 1);
        let exact = u64::from(size) * share;
        // What is left of a whole one comes with its chance.
        let one_more = self.hits(dealer, day, Draw::OneMore, exact % 10_000);
        (exact / 10_000) as u32 + u32::from(one_more)
    }

    /// Whether a unit that is new to the stock is still on its way.
    pub(crate) fn is_on_its_way(&self, unit: u64, day: u32) -> bool {
        self.hits(unit, day, Draw::OnItsWay, STILL_ON_ITS_WAY)
    }

    /// What has become of a unit.
    pub(crate) fn fate(&self, unit: &Arrival) -> Fate {
        let mut fate = Fate { status: unit.status, day: unit.day, price: unit.price.unwrap_or(0) };
        for day in unit.day + 1..=self.count() {
            match fate.status {
                Status::Sold => break,
                Status::Intransit if self.hits(unit.number, day, Draw::Move, ARRIVES) => {
                    (fate.status, fate.day) = (Status::Available, day);
                }
                Status::Pending => match self.below(unit.number, day, Draw::Move, 10_000) {
                    at if at < CLOSED => (fate.status, fate.day) = (Status::Sold, day),
                    at if at < CLOSED + FELL_THROUGH => (fate.status, fate.day) = (Status::Available, day),
                    _ => {}
                },
                Status::Available => self.offer(unit, day, &mut fate),
                Status::Intransit => {}
            }
        }
        fate
    }

    /// A business day on which a unit is for sale: it may get cheaper, and a buyer may come.
    fn offer(&self, unit: &Arrival, day: u32, fate: &mut Fate) {
        let age_on = |other: u32| unit.age + self.days_to(other) - self.days_to(unit.day);
        let (before, age) = (age_on(day - 1), age_on(day));
        if CUT_AT.iter().any(|&step| before < step && step <= age) {
            let percent = 1 + self.below(unit.number, day, Draw::Cut, DEEPEST_CUT) as u32;
            // In steps of 50, as prices are advertised.
            let cut = fate.price / 100 * percent / 50 * 50;
            if cut > 0 {
                fate.price -= cut;
                fate.day = day;
            }
        }
        if self.hits(unit.number, day, Draw::Move, unit.demand(age, fate.price)) {
            (fate.status, fate.day) = (Status::Pending, day);
        }
    }
}

/// A unit as it was when it came, or at the start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// Tells it apart from all other units.
    pub(crate) number: u64,
    pub(crate) status: Status,
    /// The business day on which it came; 0 for what was there at the start.
    pub(crate) day: u32,
    /// Days that it had been in stock by then.
    pub(crate) age: u32,
    /// What it was offered for, in USD.
    pub(crate) price: Option<u32>,
    /// What like units cost at the start on average, where there are enough of them.
    pub(crate) peers: Option<u32>,
    /// How soon its class sells, in per cent of a car.
    pub(crate) pace: u64,
}

impl Arrival {
    /// The share of such units that a buyer comes for on a business day.
    fn demand(&self, age: u32, price: u32) -> u64 {
        // Most buyers look at what is new on the lot; what has stood long is looked at twice.
        let by_age = match age {
            0..=7 => 80,
            8..=30 => 120,
            31..=60 => 100,
            61..=90 => 85,
            _ => 70,
        };
        let by_price = match (self.price, self.peers) {
            (None, _) => 60,
            (_, None | Some(0)) => 100,
            (_, Some(peers)) => match u64::from(price) * 100 / u64::from(peers) {
                0..=84 => 180,
                85..=94 => 130,
                95..=104 => 100,
                105..=114 => 75,
                _ => 50,
            },
        };
        USUAL * by_age * by_price * self.pace / 1_000_000
    }
}

/// What has become of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) status: Status,
    /// The business day on which its status or price last changed.
    pub(crate) day: u32,
    /// What it is offered for now; 0 where it has no price.
    pub(crate) price: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Date = Date::constant(2026, 1, 1);

    fn after(days: i32) -> Calendar {
        Calendar::new(42, START, START.checked_add(jiff::Span::new().days(days)).unwrap())
    }

    fn unit(number: u64) -> Arrival {
        let (status, price) = (Status::Available, Some(20_000));
        Arrival { number, status, day: 0, age: 20, price, peers: Some(20_000), pace: 100 }
    }

    #[test]
    fn business_days_are_counted_when_they_are_over() {
        // 1 January 2026 is a Thursday.
        assert_eq!([0, 1, 2, 3, 4, 5].map(|days| after(days).count()), [0, 1, 2, 2, 2, 3]);
        let calendar = after(5);
        assert_eq!((calendar.date(1), calendar.date(3)), (START, Date::constant(2026, 1, 5)));
        assert_eq!(seconds_at_start(calendar.date(3)), calendar.touched(7, 3) / 86_400 * 86_400);
    }

    #[test]
    fn one_or_two_of_a_hundred_find_a_buyer_each_day() {
        let calendar = after(1);
        let gone = |unit: &dyn Fn(u64) -> Arrival| {
            (0..20_000).filter(|&number| calendar.fate(&unit(number)).status != Status::Available).count()
        };
        let usual = gone(&unit);
        assert!((200..=400).contains(&usual), "{usual} of 20,000");
        let dear = gone(&|number| Arrival { peers: Some(15_000), ..unit(number) });
        let cheap = gone(&|number| Arrival { peers: Some(25_000), ..unit(number) });
        let old = gone(&|number| Arrival { age: 100, ..unit(number) });
        assert!(dear * 3 < cheap * 2 && old < usual, "{dear} {cheap} {old} {usual}");
    }

    #[test]
    fn a_fate_goes_on_from_where_it_was() {
        let (mut sold, mut cut) = (0, 0);
        for number in 0..2_000 {
            let (mut status, mut price) = (Status::Available, 20_000);
            for days in 0..90 {
                let fate = after(days).fate(&unit(number));
                let may_follow = match status {
                    Status::Available => &[Status::Available, Status::Pending][..],
                    Status::Pending => &[Status::Available, Status::Pending, Status::Sold],
                    _ => &[Status::Sold],
                };
                assert!(may_follow.contains(&fate.status), "{status:?} to {:?} on day {days}", fate.status);
                assert!(
                    fate.price <= price && fate.price >= price * 95 / 100 && fate.day <= after(days).count()
                );
                (status, price) = (fate.status, fate.price);
            }
            sold += u32::from(status == Status::Sold);
            cut += u32::from(price < 20_000);
        }
        assert!((900..1_700).contains(&sold), "{sold} sold in 90 days");
        assert!(cut > 400, "{cut} got cheaper");
    }

    #[test]
    fn what_comes_in_is_about_what_is_sold() {
        let calendar = after(1_000);
        for (size, low, high) in [(20, 120, 230), (500, 3_700, 4_900), (1_000_000, 7_400_000, 9_800_000)] {
            let all: u32 = (1..=calendar.count()).map(|day| calendar.arrivals(7, day, size)).sum();
            assert!((low..=high).contains(&all), "{all} for {size} in {} days", calendar.count());
        }
    }
}
