//! Loops of Rust. Comments say where the test counts executions and iterations: it compiles the program once more with
//! statements in their places.

use std::collections::BTreeMap;
use std::hint::black_box;

#[inline(never)]
fn sort(list: &mut [i32]) {
    // before sort
    for i in 1..list.len() { // loop sort
        // inside sort
        let mut k = i;
        // before shift
        while k > 0 && list[k - 1] > list[k] { // loop shift
            // inside shift
            list.swap(k - 1, k);
            k -= 1;
        }
    }
}

#[inline(never)]
fn parse(text: &str) -> Result<Vec<i32>, String> {
    let mut found = Vec::new();
    let mut rest = text.chars().peekable();
    // before parse
    while let Some(&c) = rest.peek() { // loop parse
        // inside parse
        if c == ' ' {
            rest.next();
            continue;
        }
        let mut n = 0;
        // before digits
        while let Some(d) = rest.peek().and_then(|c| c.to_digit(10)) { // loop digits
            // inside digits
            n = n * 10 + d as i32;
            rest.next();
        }
        if n == 0 {
            return Err(format!("no number at {:?}", rest.peek()));
        }
        found.push(n);
    }
    Ok(found)
}

#[inline(never)]
fn search(rows: &[Vec<i32>], wanted: i32) -> Option<(usize, usize)> {
    // before rows
    'rows: for (y, row) in rows.iter().enumerate() { // loop rows
        // inside rows
        // before cells
        for (x, &cell) in row.iter().enumerate() { // loop cells
            // inside cells
            if cell > wanted {
                continue 'rows;
            }
            if cell == wanted {
                return Some((y, x));
            }
        }
    }
    None
}

#[inline(never)]
fn collatz(mut n: u64) -> u32 {
    let mut steps = 0;
    // before collatz
    let all = loop { // loop collatz
        // inside collatz
        if n == 1 {
            break steps;
        }
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
    };
    all + 1
}

#[inline(never)]
fn words(text: &str) -> usize {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    // before words
    for w in text.split_whitespace() { // loop words
        // inside words
        *counts.entry(w).or_insert(0) += 1;
    }
    let mut most = 0;
    // before most
    for n in counts.values() { // loop most
        // inside most
        if *n > most {
            most = *n;
        }
    }
    most
}

#[inline(never)]
fn product(a: &[f64], b: &[f64], n: usize) -> f64 {
    let mut sum = 0.0;
    // before i
    for i in 0..n { // loop i
        // inside i
        // before j
        for j in (0..n).rev().step_by(2) { // loop j
            // inside j
            sum += a[i * n + j] * b[j * n + i];
        }
    }
    sum
}

#[inline(never)]
fn machine(code: &[u8]) -> i32 {
    let (mut n, mut at) = (0, 0);
    // before machine
    while at < code.len() { // loop machine
        // inside machine
        match code[at] {
            b'+' => n += 1,
            b'-' => n -= 1,
            b'[' if n == 0 => {
                // before skip
                while code[at] != b']' { // loop skip
                    // inside skip
                    at += 1;
                }
            }
            b'!' => return n,
            _ => {}
        }
        at += 1;
    }
    n
}

fn main() {
    let mut list = [5, 3, 9, 1, 7, 2, 8];
    sort(black_box(&mut list));
    sort(black_box(&mut []));
    let parsed = parse(black_box("12 7  305")).map(|v| v.len());
    let failed = parse(black_box("4 x")).is_err();
    let rows = vec![vec![1, 5, 9], vec![2, 4], vec![], vec![3, 6, 7]];
    let found = search(black_box(&rows), 6);
    let lost = search(black_box(&rows), 100);
    let steps = collatz(black_box(27)) + collatz(black_box(1));
    let most = words(black_box("a b a c b a")) + words(black_box(""));
    let a = [1.5; 25];
    let p = product(black_box(&a), black_box(&a), 5);
    let m = machine(black_box(b"++-[+]--[-+]+!+")) + machine(black_box(b""));
    println!("{list:?} {parsed:?} {failed} {found:?} {lost:?} {steps} {most} {p} {m}");
}
