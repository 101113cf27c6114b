//! Loops in Rust, each with a number of executions and iterations that the test knows.

use std::hint::black_box;

#[no_mangle]
#[inline(never)]
fn step(k: usize) -> usize {
    black_box(k) & 3
}

#[no_mangle]
#[inline(never)]
fn work(n: usize, m: usize) -> usize { // runs 5
    let mut found = 0;
    let mut i = 0; // runs 5
    while i < n { // runs 15
        i += 1; // runs 10
        if i % 3 == 0 { // runs 10
            continue;
        }
        let mut k = 0; // runs 8
        while k < black_box(m) { // runs 41
            found += step(k + i); // runs 33
            k += 1; // runs 33
        }
    }
    found // runs 5
}

#[no_mangle]
#[inline(never)]
fn kinds(code: &[u8]) -> usize {
    let mut n = 0;
    let mut at = 0;
    loop {
        match code[at] {
            b'a' => n += step(n), // runs 2
            b'b' => n = n * 2 + step(1),
            b'c' => n += 4, // runs 2
            b'd' => n ^= 5,
            b'e' => n += step(3),
            _ => return n, // runs 2
        }
        at += 1; // runs 9
    }
}

fn main() {
    let mut t = 0;
    for i in 0..5 {
        t += work(black_box(i), 7 - i); // runs 5
    }
    println!("{}", t + kinds(b"abcdedcbax") + kinds(b"x"));
}
