// panics TIMES THREADS: on a line on stdin, the threads at once call generic
// functions and leave frames by panics, TIMES times each: caught by
// catch_unwind, thrown on, and joined from a thread. Every frame's value must be
// dropped. Prints "counted" then, and stays until stdin ends.
use std::io::{stdin, stdout, Write};
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

static DROPPED: AtomicU64 = AtomicU64::new(0);

struct Held(u64);
impl Drop for Held {
    #[inline(never)]
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0, Relaxed);
    }
}

trait Add {
    fn add(&self, n: u64) -> u64;
}
impl Add for u32 {
    #[inline(never)]
    fn add(&self, n: u64) -> u64 {
        *self as u64 + n
    }
}
impl Add for String {
    #[inline(never)]
    fn add(&self, n: u64) -> u64 {
        self.len() as u64 + n
    }
}

#[inline(never)]
fn generic<T: Add>(t: &T, n: u64) -> u64 {
    t.add(n) + 1
}

#[no_mangle]
#[inline(never)]
pub fn left_by_panic(n: u64) -> u64 {
    let held = Held(1);
    if n < u64::MAX {
        panic::panic_any(n);
    }
    held.0
}

#[no_mangle]
#[inline(never)]
pub fn panicked_through(n: u64) -> u64 {
    let held = Held(1);
    left_by_panic(n) + held.0
}

#[no_mangle]
#[inline(never)]
pub fn caught_in(n: u64) -> u64 {
    match panic::catch_unwind(|| panicked_through(n)) {
        Ok(_) => 0,
        Err(e) => *e.downcast::<u64>().unwrap() + 1,
    }
}

#[no_mangle]
#[inline(never)]
pub fn resumed_in(n: u64) -> u64 {
    match panic::catch_unwind(|| left_by_panic(n)) {
        Ok(n) => n,
        Err(e) => panic::resume_unwind(e),
    }
}

#[no_mangle]
#[inline(never)]
pub fn returns(n: u64) -> u64 {
    generic(&(n as u32), n) + generic(&"four".to_string(), n)
}

fn work(times: u64) {
    for n in 0..times {
        assert_eq!(caught_in(n), n + 1);
        let e = panic::catch_unwind(|| resumed_in(n)).unwrap_err();
        assert_eq!(*e.downcast::<u64>().unwrap(), n);
        let e = thread::spawn(move || left_by_panic(n)).join().unwrap_err();
        assert_eq!(*e.downcast::<u64>().unwrap(), n);
        assert_eq!(returns(n), 3 * n + 6);
    }
}

fn line() {
    let mut s = String::new();
    stdin().read_line(&mut s).unwrap();
}

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    panic::set_hook(Box::new(|_| {}));
    println!("ready");
    line();
    let threads: Vec<_> = (0..args[1]).map(|_| { let times = args[0]; thread::spawn(move || work(times)) }).collect();
    for t in threads {
        t.join().unwrap();
    }
    let each = args[0] * args[1];
    assert_eq!(DROPPED.load(Relaxed), 4 * each);
    println!("counted panics={} ok", 3 * each);
    stdout().flush().unwrap();
    line();
    println!("panics panics={} ok", 3 * each);
}
