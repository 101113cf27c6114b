//! Functions that the compiler inlines. Each counts its calls.

use std::hint::black_box;

static mut CALLS: [usize; 4] = [0; 4];

fn count(i: usize) {
    unsafe { CALLS[i] += 1 }
}

#[inline(always)]
fn square(v: usize) -> usize {
    count(0);
    black_box(v) * v
}

#[inline(always)]
fn clamp(v: usize, low: usize, high: usize) -> usize {
    count(1);
    if v < low {
        return low;
    }
    v.min(high)
}

#[inline(always)]
fn digits(mut v: usize) -> usize {
    count(2);
    let mut n = 0;
    while v != 0 {
        n += 1;
        v = black_box(v) / 10;
    }
    n
}

#[inline(always)]
fn twice(v: usize) -> usize {
    count(3);
    clamp(v, 2, 9) + clamp(v + black_box(1), 3, 7)
}

#[no_mangle]
#[inline(never)]
fn sums(n: usize) -> usize {
    let mut sum = 0;
    let mut i = 0;
    while i < n {
        sum += square(i);
        if i % 3 != 0 {
            sum += clamp(sum + i, 0, 100);
        }
        i += 1;
    }
    sum
}

#[no_mangle]
#[inline(never)]
fn rows(n: usize) -> usize {
    let mut sum = 0;
    for i in 0..n {
        sum += digits(i * 1000 + sum % 7) + twice(i);
        sum += square(sum % 5) + square(i);
    }
    sum
}

#[inline(always)]
fn cube(v: u32) -> u32 {
    v.wrapping_mul(v).wrapping_mul(v)
}

#[no_mangle]
#[inline(never)]
fn cubes(list: &[u32]) -> u32 {
    let mut sum: u32 = 0;
    for v in list {
        sum = sum.wrapping_add(cube(*v));
    }
    sum
}

fn main() {
    let list: Vec<u32> = (0..999).collect();
    let mut sum = cubes(black_box(&list)) as usize;
    for i in 0..13 {
        sum += sums(black_box(i)) + rows(black_box(i % 9));
    }
    println!("{}", sum);
    unsafe { eprintln!("{:?}", *(&raw const CALLS)) }
}
