//! Work spread over threads, whose result shows no trace of them.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Does `work` for each number below `count`, on `threads` threads (0 is one per core) that take the next number that
/// nobody has taken. The results are in the order of the numbers.
///
/// # Errors
/// The first failure by number, of those that were met; a thread that meets one takes no more work.
pub(crate) fn spread<T: Send, E: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut made = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return made;
            }
            let result = work(index);
            let failed = result.is_err();
            made.push((index, result));
            if failed {
                return made;
            }
        }
    };
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let mut made = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(run)).collect();
        let mut made = run();
        for helper in helpers {
            match helper.join() {
                Ok(more) => made.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        made
    });
    made.sort_unstable_by_key(|&(index, _)| index);
    made.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_the_first_failure_wins() {
        for threads in [0, 1, 2, 7] {
            let doubled = spread(100, threads, |n| Ok::<_, usize>(2 * n));
            assert_eq!(doubled, Ok((0..100).map(|n| 2 * n).collect()));
            assert_eq!(spread(100, threads, |n| if n == 3 { Err(n) } else { Ok(n) }), Err(3));
            assert_eq!(spread(0, threads, Ok::<usize, usize>), Ok(Vec::new()));
        }
    }
}
