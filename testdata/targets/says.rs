// says in Rust: see says.c. In front of it stands the macro of docs/markers-in-code.md.

use std::ffi::CString;
use std::io::{BufRead, Write};

extern "C" {
    fn gettid() -> i32;
}

struct Lane {
    tid: i32,
    log: String,
}

impl Lane {
    fn say(&mut self, kind: &str, title: &str, arguments: &str) {
        self.log += &format!("said\t{}\t{}\t{}\t{}\n", self.tid, kind, title, arguments);
    }
}

fn once(l: &mut Lane, number: u64, i: u64) {
    let id = number << 40 | i;
    let late = CString::new(format!("late {}", i % 5)).unwrap();
    let text = CString::new(format!("round {} of {}", i, number)).unwrap();
    callreel!("begin__frame", i);
    l.say("begin", "frame", &format!("{}", i));
    callreel!("begin_z1__named", text.as_ptr());
    l.say("begin", "named", text.to_str().unwrap());
    callreel!("begin_s", late.as_ptr(), i);
    l.say("begin", late.to_str().unwrap(), &format!("{}", i));
    callreel!("async_begin__request", id, i);
    l.say("async-begin", "request", &format!("{}|{}", id, i));
    callreel!("flow_out__job", id);
    l.say("flow-out", "job", &format!("{}", id));
    callreel!("counter__queue", i as i64 - 100);
    l.say("counter", "queue", &format!("{}", i as i64 - 100));
    callreel!("counterf__load", (i as f64 * 0.5).to_bits());
    l.say("counter", "load", &format!("{}", i as f64 * 0.5));
    callreel!("end__named", i);
    l.say("end", "named", &format!("{}", i));
    callreel!("async_step__request", id);
    l.say("async-step", "request", &format!("{}", id));
    callreel!("flow_in__job", id);
    l.say("flow-in", "job", &format!("{}", id));
    callreel!("instant__moment");
    l.say("instant", "moment", "");
    callreel!("async_end__request", id, 1, 2);
    l.say("async-end", "request", &format!("{}|1|2", id));
    if recording() {
        callreel!("instant__recorded");
        l.say("instant", "recorded", "");
    }
    callreel!("end");
    l.say("end", "", "");
}

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let (threads, rounds) = (arguments[0], arguments[1]);
    let mut line = String::new();
    println!("ready");
    std::io::stdin().lock().read_line(&mut line).unwrap();
    let all: Vec<_> = (0..threads)
        .map(|number| {
            std::thread::spawn(move || {
                let mut l = Lane { tid: unsafe { gettid() }, log: String::new() };
                let name = CString::new(format!("worker {} by its own name", number)).unwrap();
                callreel!("thread_name", name.as_ptr());
                l.say("thread-name", "", name.to_str().unwrap());
                for i in 0..rounds {
                    once(&mut l, number, i);
                }
                l.log
            })
        })
        .collect();
    for t in all {
        print!("{}", t.join().unwrap());
    }
    println!("logged");
    std::io::stdout().flush().unwrap();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    println!("says semaphore={} ok", recording() as u8);
}
