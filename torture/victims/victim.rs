// A Rust program that has the same result in every round: threads, panics that are caught,
// maps, strings, trait objects. Functions named counted_ count their calls.
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

static MIX: AtomicU64 = AtomicU64::new(0);
static FALL: AtomicU64 = AtomicU64::new(0);
static WALK: AtomicU64 = AtomicU64::new(0);

#[no_mangle]
#[inline(never)]
pub fn counted_mix(x: u64) -> u64 {
    MIX.fetch_add(1, Relaxed);
    let y = (x ^ (x >> 33)).wrapping_mul(0xff51afd7ed558ccd);
    y ^ (y >> 29)
}

// Panics every fifth time, through frames that clean up.
#[no_mangle]
#[inline(never)]
pub fn counted_fall(depth: u32, x: u64) -> u64 {
    FALL.fetch_add(1, Relaxed);
    let held = format!("held at {}", depth);
    if depth == 0 {
        if x % 5 == 0 {
            panic::resume_unwind(Box::new(x));
        }
        return x;
    }
    counted_fall(depth - 1, x + depth as u64) + held.len() as u64
}

#[no_mangle]
#[inline(never)]
pub fn counted_walk(n: u64) -> u64 {
    WALK.fetch_add(1, Relaxed);
    if n < 2 {
        n
    } else {
        // Otherwise the compiler would replace half of the calls by a loop.
        let walk = black_box(counted_walk as fn(u64) -> u64);
        walk(n - 1).wrapping_add(walk(n - 2).wrapping_mul(3))
    }
}

trait Shape {
    fn area(&self) -> u64;
}
struct Square(u64);
struct Strip(u64, u64);
impl Shape for Square {
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}
impl Shape for Strip {
    fn area(&self) -> u64 {
        self.0 * self.1
    }
}

fn work(id: u64) -> u64 {
    let mut x = 7919 * (id + 1);
    for i in 0..50 {
        x = match panic::catch_unwind(|| counted_fall(6, x % 1000 + i)) {
            Ok(v) => counted_mix(x.wrapping_add(v)),
            Err(why) => x ^ why.downcast_ref::<u64>().copied().unwrap_or(1),
        };
    }
    let mut names: HashMap<String, u64> = HashMap::new();
    let mut shapes: Vec<Box<dyn Shape>> = Vec::new();
    for i in 0..150 {
        x = counted_mix(x + i);
        *names.entry(format!("n{}", x % 40)).or_default() ^= x;
        if x & 1 == 0 {
            shapes.push(Box::new(Square(x % 97)));
        } else {
            shapes.push(Box::new(Strip(x % 89, i)));
        }
    }
    let sorted: BTreeMap<_, _> = names.into_iter().collect();
    let text: Vec<String> = sorted.iter().map(|(k, v)| format!("{k}={v:x}")).collect();
    x = text.join(",").bytes().fold(x, |a, b| a.wrapping_mul(131).wrapping_add(b as u64));
    x ^ shapes.iter().map(|s| s.area()).sum::<u64>() ^ counted_walk(11)
}

fn main() {
    for line in io::stdin().lock().lines() {
        if line.is_err() {
            break;
        }
        let threads: Vec<_> = (0..4).map(|i| thread::spawn(move || work(i))).collect();
        let all = threads
            .into_iter()
            .fold(0u64, |a, t| a.wrapping_mul(31).wrapping_add(t.join().unwrap()));
        println!(
            "{:016x} counted_mix={} counted_fall={} counted_walk={}",
            all,
            MIX.swap(0, Relaxed),
            FALL.swap(0, Relaxed),
            WALK.swap(0, Relaxed)
        );
        io::stdout().flush().unwrap();
    }
}
