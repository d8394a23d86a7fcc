//! Markers for callreel: a nop, and the note of an SDT marker.

use std::sync::atomic::{AtomicU16, Ordering};

#[used]
#[export_name = "callreel_semaphore"]
#[link_section = ".probes"]
static SEMAPHORE: AtomicU16 = AtomicU16::new(0);

/// Whether somebody records.
pub fn recording() -> bool {
    SEMAPHORE.load(Ordering::Relaxed) != 0
}

/// A marker of a kind and a title, such as `"begin__parse"`, with up to three integers.
#[macro_export]
macro_rules! callreel {
    (@site $name:literal, $arguments:literal $(, $value:expr)*) => {
        unsafe {
            ::std::arch::asm!(
                ".p2align 3,,4",
                "990: .byte 0x0f,0x1f,0x44,0x00,0x00", // on arm64: "990: nop"
                ".pushsection .note.stapsdt,\"?\",\"note\"",
                ".balign 4",
                ".4byte 992f-991f,994f-993f,3",
                "991: .asciz \"stapsdt\"",
                "992: .balign 4",
                "993: .8byte 990b,0,callreel_semaphore",
                concat!(".asciz \"callreel\", \"", $name, "\", \"", $arguments, "\""),
                "994: .balign 4",
                ".popsection",
                $(in(reg) $value as i64,)*
                options(att_syntax, nostack, preserves_flags), // on arm64 without att_syntax
            )
        }
    };
    ($name:literal) => { $crate::callreel!(@site $name, "") };
    ($name:literal, $a:expr) => { $crate::callreel!(@site $name, "-8@{0}", $a) };
    ($name:literal, $a:expr, $b:expr) => { $crate::callreel!(@site $name, "-8@{0} -8@{1}", $a, $b) };
    ($name:literal, $a:expr, $b:expr, $c:expr) => {
        $crate::callreel!(@site $name, "-8@{0} -8@{1} -8@{2}", $a, $b, $c)
    };
}

fn main() {
    for i in 0..3u32 {
        callreel!("begin__frame", i);
        callreel!("counter__queue", i * 2);
        callreel!("counterf__load", (i as f64 * 0.5).to_bits());
        callreel!("async_begin__request", i);
        callreel!("async_end__request", i, 1, 2);
        callreel!("end");
    }
    println!("{}", recording());
}
