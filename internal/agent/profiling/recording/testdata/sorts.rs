// SPDX-License-Identifier: Apache-2.0

// Each line of input is a number of milliseconds. It spends so much CPU time in generic functions and closures of Rust's library, and
// prints a line.
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::time::Duration;

// CPU time of this thread.
fn used() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split_whitespace().next().unwrap().parse().unwrap())
}

fn work(time: Duration) -> usize {
    let begin = used();
    let mut random: u64 = 1;
    let mut sum = 0;
    while used() - begin < time {
        let mut names: Vec<String> = (0..2000)
            .map(|_| {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                format!("{}", random >> 33)
            })
            .collect();
        names.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        let mut by: BTreeMap<&str, Box<dyn Fn(usize) -> usize + '_>> = BTreeMap::new();
        for name in &names {
            by.insert(name, Box::new(move |n| n + name.len()));
        }
        sum += by.values().map(|f| f(1)).sum::<usize>();
    }
    sum
}

fn main() {
    for line in io::stdin().lock().lines() {
        let milliseconds: f64 = line.unwrap().trim().parse().unwrap();
        let sum = work(Duration::from_secs_f64(milliseconds / 1e3));
        println!("0 0 0 {}", sum % 2);
        io::stdout().flush().unwrap();
    }
}
