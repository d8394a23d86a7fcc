// One portion of work for each line of input, answered by what came of it.
use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, Write};
use std::sync::{mpsc, Arc, Mutex};
use std::{panic, thread};

trait Shape {
    fn area(&self) -> u64;
}
struct Square(u64);
struct Ring(u64);
impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}
impl Shape for Ring {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0 * 3
    }
}

struct Dropped<'a>(&'a Mutex<u64>);
impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        *self.0.lock().unwrap() += 1;
    }
}

#[inline(never)]
fn fail(n: u32, dropped: &Mutex<u64>) -> u32 {
    let _held = Dropped(dropped);
    if n == 0 {
        panic!("deep");
    }
    fail(n - 1, dropped) + 1
}

fn portion() -> String {
    let mut seed: u64 = 42;
    let mut next = move |n: u64| {
        seed = (seed.wrapping_mul(1103515245) + 12345) % 2147483648;
        seed / 65536 % n
    };
    let mut words = Vec::new();
    for _ in 0..20000 {
        let n = 2 + next(7);
        words.push((0..n).map(|_| (b'a' + next(8) as u8) as char).collect::<String>());
    }
    let mut count: HashMap<&str, usize> = HashMap::new();
    for w in &words {
        *count.entry(w).or_default() += 1;
    }
    let mut sorted: Vec<_> = count.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let tree: BTreeMap<String, usize> = words.iter().enumerate().map(|(i, w)| (w.to_uppercase(), i)).collect();
    let shapes: Vec<Box<dyn Shape>> =
        (0..5000).map(|i| if i % 3 == 0 { Box::new(Ring(i)) as Box<dyn Shape> } else { Box::new(Square(i)) }).collect();
    let area: u64 = shapes.iter().map(|s| s.area()).sum();
    let dropped = Mutex::new(0);
    let mut failed = 0;
    for i in 0..200 {
        if panic::catch_unwind(panic::AssertUnwindSafe(|| fail(i % 30, &dropped))).is_err() {
            failed += 1;
        }
    }
    let (tx, rx) = mpsc::channel();
    let shared = Arc::new(words.clone());
    let threads: Vec<_> = (0..4)
        .map(|k| {
            let (tx, shared) = (tx.clone(), shared.clone());
            thread::spawn(move || tx.send(shared.iter().skip(k).map(|w| w.len() * (k + 1)).sum::<usize>()).unwrap())
        })
        .collect();
    drop(tx);
    let sum: usize = rx.iter().sum();
    for t in threads {
        t.join().unwrap();
    }
    let mut hash: u64 = 14695981039346656037;
    for (w, i) in &tree {
        for b in format!("{w}={i:>5};").bytes() {
            hash = (hash ^ b as u64).wrapping_mul(1099511628211);
        }
    }
    format!("{:x} {} {} {} {} {} {:?}", hash, area, failed, dropped.lock().unwrap(), sum, sorted.len(), sorted[0])
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    for line in io::stdin().lock().lines() {
        line.unwrap();
        println!("{}\n~end", portion());
        io::stdout().flush().unwrap();
    }
}
