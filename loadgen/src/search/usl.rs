//! The Universal Scalability Law (Gunther): how throughput grows with concurrency, and where it stops.
//!
//! X(N) = lambda N / (1 + alpha (N - 1) + beta N (N - 1)): lambda is what one user gets, alpha the share of work that waits
//! for others (contention), beta the cost of agreeing with them (coherency). With y = N / X the law is linear in
//! 1/lambda, alpha/lambda and beta/lambda, so least squares have one solution.

use serde::Serialize;

/// A fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Fit {
    /// Requests per second of one user alone.
    pub(crate) lambda: f64,
    /// Contention, 0 or more.
    pub(crate) alpha: f64,
    /// Coherency, 0 or more.
    pub(crate) beta: f64,
    /// The users at which throughput is highest: sqrt((1 - alpha) / beta); `None` if it only ever grows.
    pub(crate) peak_users: Option<f64>,
    /// The throughput there.
    pub(crate) peak_per_s: Option<f64>,
    /// The share of the variation of the throughputs that the law explains, at most 1.
    pub(crate) r_squared: f64,
}

impl Fit {
    /// The throughput that the law gives for so many users.
    pub(crate) fn at(&self, users: f64) -> f64 {
        self.lambda * users / (1.0 + self.alpha * (users - 1.0) + self.beta * users * (users - 1.0))
    }
}

/// Why there is no fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FitError {
    /// Three unknowns need three points.
    #[error("a fit needs at least three different numbers of users with a throughput above 0")]
    TooFew,
}

/// Fits the law to throughputs by users.
pub(crate) fn fit(points: &[(f64, f64)]) -> Result<Fit, FitError> {
    let points: Vec<(f64, f64)> =
        points.iter().copied().filter(|(users, rate)| *users >= 1.0 && *rate > 0.0).collect();
    let mut users: Vec<f64> = points.iter().map(|(users, _)| *users).collect();
    users.sort_by(f64::total_cmp);
    users.dedup();
    if users.len() < 3 {
        return Err(FitError::TooFew);
    }
    // Coefficients below 0 mean nothing in the law: the fit is made again without them.
    let mut kept = [true; 3];
    let mut found = solve(&points, kept);
    for _ in 0..2 {
        let below = (1..3).filter(|&index| kept[index] && found[index] < 0.0);
        let Some(worst) = below.min_by(|&one, &two| found[one].total_cmp(&found[two])) else { break };
        kept[worst] = false;
        found = solve(&points, kept);
    }
    let [one, contention, coherency] = found;
    let lambda = 1.0 / one.max(f64::MIN_POSITIVE);
    let (alpha, beta) = (contention.max(0.0) * lambda, coherency.max(0.0) * lambda);
    let mut fit = Fit { lambda, alpha, beta, peak_users: None, peak_per_s: None, r_squared: 0.0 };
    if beta > 0.0 && alpha < 1.0 {
        let peak = ((1.0 - alpha) / beta).sqrt().max(1.0);
        (fit.peak_users, fit.peak_per_s) = (Some(peak), Some(fit.at(peak)));
    }
    let mean = points.iter().map(|(_, rate)| rate).sum::<f64>() / points.len() as f64;
    let total: f64 = points.iter().map(|(_, rate)| (rate - mean) * (rate - mean)).sum();
    let left: f64 = points.iter().map(|(users, rate)| rate - fit.at(*users)).map(|left| left * left).sum();
    fit.r_squared = if total > 0.0 { 1.0 - left / total } else { 1.0 };
    Ok(fit)
}

/// Least squares of y = c0 + c1 (N - 1) + c2 N (N - 1), where some coefficients are 0. Errors count relative to y: those of
/// a throughput are about the same share of it everywhere.
fn solve(points: &[(f64, f64)], kept: [bool; 3]) -> [f64; 3] {
    let mut matrix = [[0.0f64; 4]; 3];
    for &(users, rate) in points {
        let y = users / rate;
        let basis = [1.0, users - 1.0, users * (users - 1.0)];
        let weight = 1.0 / (y * y);
        for row in 0..3 {
            for column in 0..3 {
                matrix[row][column] += weight * basis[row] * basis[column];
            }
            matrix[row][3] += weight * basis[row] * y;
        }
    }
    for index in 0..3 {
        if !kept[index] {
            (0..3).for_each(|other| matrix[other][index] = 0.0);
            matrix[index] = [0.0; 4];
            matrix[index][index] = 1.0;
        }
    }
    eliminate(matrix)
}

/// Gauss, with the largest pivot of each column.
fn eliminate(mut matrix: [[f64; 4]; 3]) -> [f64; 3] {
    for column in 0..3 {
        let pivot =
            (column..3).max_by(|&one, &two| matrix[one][column].abs().total_cmp(&matrix[two][column].abs()));
        matrix.swap(column, pivot.unwrap_or(column));
        let lead = matrix[column][column];
        if lead == 0.0 {
            return [0.0; 3];
        }
        let pivot_row = matrix[column];
        for (index, row) in matrix.iter_mut().enumerate() {
            if index != column {
                let factor = row[column] / lead;
                row.iter_mut().zip(pivot_row).for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
    }
    [0, 1, 2].map(|index| matrix[index][3] / matrix[index][index])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(lambda: f64, alpha: f64, beta: f64) -> Vec<(f64, f64)> {
        let law = Fit { lambda, alpha, beta, peak_users: None, peak_per_s: None, r_squared: 0.0 };
        [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(|users| (users, law.at(users))).to_vec()
    }

    #[test]
    fn known_curves_are_found_again() {
        for (lambda, alpha, beta) in [(1000.0, 0.05, 0.001), (40.0, 0.3, 0.02), (995.6, 0.02671, 0.000769)] {
            let fit = fit(&curve(lambda, alpha, beta)).unwrap();
            assert!((fit.lambda / lambda - 1.0).abs() < 1e-6, "{fit:?}");
            assert!((fit.alpha - alpha).abs() < 1e-6 && (fit.beta - beta).abs() < 1e-6, "{fit:?}");
            let peak = ((1.0 - alpha) / beta).sqrt();
            assert!((fit.peak_users.unwrap() - peak).abs() < 0.01, "{fit:?}");
            assert!(fit.r_squared > 0.999_999);
        }
    }

    #[test]
    fn a_little_noise_changes_little() {
        let noisy: Vec<(f64, f64)> = curve(1000.0, 0.05, 0.001)
            .into_iter()
            .zip([1.01, 0.99, 1.005, 0.995, 1.01, 0.99])
            .map(|((users, rate), factor)| (users, rate * factor))
            .collect();
        let fit = fit(&noisy).unwrap();
        assert!((fit.lambda / 1000.0 - 1.0).abs() < 0.03 && (fit.alpha - 0.05).abs() < 0.02, "{fit:?}");
        assert!((fit.peak_users.unwrap() / 30.8 - 1.0).abs() < 0.2, "{fit:?}");
    }

    #[test]
    fn what_only_grows_has_no_peak() {
        let linear = fit(&curve(100.0, 0.0, 0.0)).unwrap();
        assert!(linear.alpha < 1e-9 && linear.peak_users.is_none_or(|peak| peak > 1e4), "{linear:?}");
        // Better than linear, which the law does not know: the nearest is linear.
        let more = fit(&[(1.0, 100.0), (2.0, 210.0), (4.0, 430.0), (8.0, 900.0)]).unwrap();
        assert!(more.alpha >= 0.0 && more.beta >= 0.0, "{more:?}");
    }

    #[test]
    fn too_few_points_are_said() {
        assert_eq!(fit(&[(1.0, 10.0), (2.0, 19.0)]), Err(FitError::TooFew));
        assert_eq!(fit(&[(1.0, 10.0), (1.0, 10.1), (2.0, 19.0), (4.0, 0.0)]), Err(FitError::TooFew));
    }
}
