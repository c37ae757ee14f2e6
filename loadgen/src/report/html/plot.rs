//! The frame of a chart: a scale for each direction, its grid and its labels. Pure text.

use std::fmt::Write as _;

use crate::units::show_nanos;

/// The size of a chart in its own units; the page scales it to the width it has.
pub(super) const WIDTH: f64 = 760.0;
/// What is left free for labels: left, right, top and bottom.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 34.0;

/// How values become places.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scale {
    /// From the first to the second.
    Linear(f64, f64),
    /// The same by logarithms; both are above 0.
    Log(f64, f64),
}

impl Scale {
    /// The place of a value: 0 at the scale's begin, 1 at its end, cut off beyond.
    pub(super) fn place(self, value: f64) -> f64 {
        let place = match self {
            Scale::Linear(from, to) => (value - from) / (to - from),
            Scale::Log(from, to) => {
                (libm::log10(value.max(from)) - libm::log10(from)) / (libm::log10(to) - libm::log10(from))
            }
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Round values within the scale, at most about ten.
    pub(super) fn ticks(self) -> Vec<f64> {
        match self {
            Scale::Linear(from, to) => {
                let step = round_up((to - from) / 6.0);
                let first = (from / step).ceil() as i64;
                let last = (to / step).floor() as i64;
                (first..=last).take(20).map(|index| index as f64 * step).collect()
            }
            Scale::Log(from, to) => {
                let decades = libm::log10(to / from);
                let steps: &[f64] = match decades {
                    ..2.0 => &[1.0, 2.0, 5.0],
                    2.0..4.0 => &[1.0, 3.0],
                    _ => &[1.0],
                };
                let first = libm::log10(from).floor() as i32;
                let last = libm::log10(to).ceil() as i32;
                let all = (first..=last).flat_map(|exponent| {
                    steps.iter().map(move |step| step * libm::pow(10.0, f64::from(exponent)))
                });
                all.filter(|value| *value >= from * 0.999 && *value <= to * 1.001).collect()
            }
        }
    }
}

/// The next of 1, 2, 5, 10, 20, ...
pub(super) fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let base = libm::pow(10.0, libm::log10(value).floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * base)
        .find(|&step| step >= value * 0.999)
        .unwrap_or(base)
}

/// A chart in the making.
#[derive(Debug)]
pub(super) struct Plot {
    out: String,
    height: f64,
    x: Scale,
    y: Scale,
}

impl Plot {
    /// Begins a chart. `title` is what it is called and `words` what it shows, for readers who cannot see it.
    pub(super) fn new(title: &str, words: &str, height: f64, x: Scale, y: Scale) -> Plot {
        let mut out = String::new();
        let _ = write!(
            out,
            r#"<svg role="img" viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg"><title>{}</title><desc>{}</desc>"#,
            super::escape(title),
            super::escape(words)
        );
        Plot { out, height, x, y }
    }

    /// The place of a value, from the left.
    pub(super) fn x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    /// The place of a value, from the top.
    pub(super) fn y(&self, value: f64) -> f64 {
        self.height - BOTTOM - self.y.place(value) * (self.height - TOP - BOTTOM)
    }

    /// Grid lines and labels of the upright scale.
    pub(super) fn y_axis(&mut self, label: impl Fn(f64) -> String) {
        for value in self.y.ticks() {
            let y = self.y(value);
            let _ = write!(
                self.out,
                r#"<path class="grid" d="M{LEFT} {y:.1}H{:.1}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                super::escape(&label(value))
            );
        }
    }

    /// Grid lines and labels of the other scale, at these values.
    pub(super) fn x_axis(&mut self, values: impl IntoIterator<Item = (f64, String)>, name: &str) {
        let bottom = self.height - BOTTOM;
        for (value, label) in values {
            let x = self.x(value);
            // A label that would run over the edge stands within it.
            let anchor = if x > WIDTH - RIGHT - 20.0 { "end" } else { "middle" };
            let _ = write!(
                self.out,
                r#"<path class="grid" d="M{x:.1} {TOP}V{bottom:.1}"/><text x="{x:.1}" y="{:.1}" text-anchor="{anchor}">{}</text>"#,
                bottom + 14.0,
                super::escape(&label)
            );
        }
        let _ = write!(
            self.out,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            (LEFT + WIDTH - RIGHT) / 2.0,
            self.height - 4.0,
            super::escape(name)
        );
    }

    /// A line through points; it breaks where one is missing.
    pub(super) fn line(&mut self, class: &str, points: impl IntoIterator<Item = Option<(f64, f64)>>) {
        let mut path = String::new();
        let mut is_down = false;
        for point in points {
            let Some((x, y)) = point else {
                is_down = false;
                continue;
            };
            let _ = write!(path, "{}{:.1} {:.1}", if is_down { 'L' } else { 'M' }, self.x(x), self.y(y));
            is_down = true;
        }
        if !path.is_empty() {
            let _ = write!(self.out, r#"<path class="line {class}" d="{path}"/>"#);
        }
    }

    /// Rectangles of one kind: their left, right, upper and lower values.
    pub(super) fn boxes(&mut self, class: &str, boxes: impl IntoIterator<Item = [f64; 4]>) {
        let mut path = String::new();
        for [left, right, upper, lower] in boxes {
            let (x, y) = (self.x(left), self.y(upper));
            let (width, height) = (self.x(right) - x, self.y(lower) - y);
            let _ = write!(path, "M{x:.1} {y:.1}h{width:.2}v{height:.2}h-{width:.2}z");
        }
        if !path.is_empty() {
            let _ = write!(self.out, r#"<path class="{class}" d="{path}"/>"#);
        }
    }

    /// The finished chart.
    pub(super) fn finish(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }
}

/// A label of a time axis that is in nanoseconds: `5ms`, and `1.5ms` where it must be.
pub(super) fn label_nanos(nanos: f64) -> String {
    let text = show_nanos(nanos.round() as u64);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number}{unit}")
}

/// The ends of a logarithmic scale for these values, in nanoseconds.
pub(super) fn nanos_scale(low: u64, high: u64) -> Scale {
    let low = (low.max(1_000) as f64) * 0.9;
    Scale::Log(low, (high as f64 * 1.1).max(low * 3.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(Scale::Linear(0.0, 60.0).ticks(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        assert_eq!(Scale::Log(0.9e6, 6e6).ticks(), [1e6, 2e6, 5e6]);
        for (low, high) in [(1e3, 3.6e12), (5e5, 6e5), (1e6, 1e9)] {
            let count = Scale::Log(low, high).ticks().len();
            assert!(count <= 12, "{low} to {high}: {count}");
        }
        assert!(Scale::Linear(0.0, 0.0).ticks().len() <= 20);
    }

    #[test]
    fn places_are_within_the_scale() {
        let scale = Scale::Log(1e3, 1e6);
        assert!((scale.place(1e3)).abs() < 1e-9 && (scale.place(1e6) - 1.0).abs() < 1e-9);
        assert_eq!((scale.place(0.0), scale.place(1e12)), (0.0, 1.0));
        assert_eq!(Scale::Linear(0.0, 0.0).place(1.0), 0.0);
    }

    #[test]
    fn labels_have_no_idle_zeros() {
        assert_eq!(label_nanos(5e6), "5ms");
        assert_eq!(label_nanos(2.5e5), "250us");
        assert_eq!(label_nanos(1e9), "1s");
    }
}
