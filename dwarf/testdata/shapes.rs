// What Rust adds: its own mangling, generics, closures, inlining across crates.
#[inline(always)]
fn third(n: u64) -> u64 {
    std::hint::black_box(n * 3) + 1
}

#[inline(always)]
fn second(n: u64) -> u64 {
    third(n) + third(n + 1)
}

struct Square<T> {
    side: T,
}

impl<T: Copy + Into<u64>> Square<T> {
    #[inline(never)]
    fn area(&self) -> u64 {
        let scale = |by: u64| second(by) * self.side.into();
        scale(2) + scale(3)
    }
}

fn main() {
    let n = std::env::args().count() as u32;
    println!("{}", Square { side: n }.area() + Square { side: n as u8 }.area());
}
