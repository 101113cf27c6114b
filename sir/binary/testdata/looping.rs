//! Loops in Rust, each with a number of executions and iterations that the test knows.

use std::hint::black_box;

#[no_mangle]
#[inline(never)]
fn step(k: usize) -> usize {
    black_box(k) & 3
}

#[no_mangle]
#[inline(never)]
fn work(n: usize, m: usize) -> usize {
    let mut found = 0;
    let mut i = 0;
    while i < n {
        i += 1;
        if i % 3 == 0 {
            continue;
        }
        let mut k = 0;
        while k < black_box(m) {
            found += step(k + i);
            k += 1;
        }
    }
    found
}

#[no_mangle]
#[inline(never)]
fn kinds(code: &[u8]) -> usize {
    let mut n = 0;
    let mut at = 0;
    loop {
        match code[at] {
            b'a' => n += step(n),
            b'b' => n = n * 2 + step(1),
            b'c' => n += 4,
            b'd' => n ^= 5,
            b'e' => n += step(3),
            _ => return n,
        }
        at += 1;
    }
}

fn main() {
    let mut t = 0;
    for i in 0..5 {
        t += work(black_box(i), 7 - i);
    }
    println!("{}", t + kinds(b"abcdedcbax") + kinds(b"x"));
}
