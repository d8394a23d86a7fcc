package symbolize

import (
	"strings"
	"testing"
)

func TestLinesOfStacksAreKnownInManyShapes(t *testing.T) {
	for _, c := range []struct {
		text  string
		addr  uint64
		kind  Kind
		index int
		place Place
	}{
		{"0x55d2c0a1", 0x55d2c0a1, Auto, -1, Place{}},
		{"  00007f12c0a15000  ", 0x7f12c0a15000, Auto, -1, Place{}},
		{"\t0x1f interrupted", 0x1f, Exact, -1, Place{}},
		{"0x1f signal", 0x1f, Signal, -1, Place{}},
		{"0x1f return\r", 0x1f, Return, -1, Place{}},
		{"#0  0x00007ffff7e8a9bc in raise () from /lib/libc.so.6", 0x7ffff7e8a9bc, Auto, 0, Place{}},
		{"#13 0x00005555555551b9 in main (argc=1, argv=0x7fffffffe0a8) at a.c:3", 0x5555555551b9, Return, 13, Place{}},
		{"  * frame #0: 0x0000000100003f4c prog`main + 28 at a.c:7", 0x100003f4c, Auto, 0, Place{}},
		{"    frame #2: 0x0000000100003f4c prog`start", 0x100003f4c, Return, 2, Place{}},
		{"    #1 0x4f2b8c in f /src/a.c:3:5", 0x4f2b8c, Return, 1, Place{}},
		{"    #1 0x55d2c0a1  (/usr/bin/my prog+0x1f4b) (BuildId: ABcd01)", 0x55d2c0a1, Exact, 1, Place{Path: "/usr/bin/my prog", ID: "abcd01", Offset: 0x1f4b}},
		{"      #03 pc 0000000000012340  /system/lib64/libc.so (abort+168) (BuildId: 0123456789abcdef)", 0x12340, Exact, 3,
			Place{Path: "/system/lib64/libc.so", ID: "0123456789abcdef", Offset: 0x12340}},
		{"  #1  0x00007f93a15a2c0c __pthread_kill_implementation (libc.so.6 + 0x8fc0c)", 0x7f93a15a2c0c, Return, 1, Place{Path: "libc.so.6", Offset: 0x8fc0c}},
		{"3   my app                       \t0x0000000100003f4c 0x100000000 + 16204", 0x100003f4c, Return, 3, Place{}},
		{"0   libsystem_kernel.dylib        \t0x00000001a2b3c4d0 __pthread_kill + 8", 0x1a2b3c4d0, Auto, 0, Place{}},
		{"/usr/bin/prog(+0x1136) [0x55d2c0a1]", 0x55d2c0a1, Return, -1, Place{Path: "/usr/bin/prog", Offset: 0x1136}},
		{"./prog(main+0x1c)[0x55d2c0a1]", 0x55d2c0a1, Return, -1, Place{Path: "./prog", Symbol: "main", Offset: 0x1c}},
		{"linux-vdso.so.1(__kernel_rt_sigreturn+0x0)[0xffffaf1b97bc]", 0xffffaf1b97bc, Signal, -1, Place{Path: "linux-vdso.so.1", Symbol: "__kernel_rt_sigreturn"}},
		{"./prog(operator+(x)-0x2) [0x55d2c0a1]", 0, 0, -2, Place{}},
		{"./prog(main-0x2) [0x55d2c0a1]", 0x55d2c0a1, Return, -1, Place{Path: "./prog", Symbol: "main", Offset: 0xfffffffffffffffe}},
		{"./prog() [0x401136]", 0x401136, Return, -1, Place{Path: "./prog", Offset: 0x401136}},
		{"[   12.345678]  [<ffffffff81234567>] do_one_initcall+0x50/0x190", 0xffffffff81234567, Return, -1, Place{}},
		{" [<ffffffffa0012345>] ? f+0x1/0x2 [mod]", 0xffffffffa0012345, Return, -1, Place{}},
		{"   3:     0x55d2c0a1 - core::panicking::panic", 0x55d2c0a1, Return, 3, Place{}},
	} {
		l := parseLine(c.text)
		if c.index == -2 {
			if l.kind == frameLine && l.frame.Place != nil && l.frame.Place.Symbol == "" {
				t.Errorf("%q: %+v", c.text, l)
			}
			continue
		}
		var place Place
		if l.frame.Place != nil {
			place = *l.frame.Place
		}
		if l.kind != frameLine || l.frame.Address != c.addr || l.frame.Kind != c.kind || l.index != c.index || place != c.place {
			t.Errorf("%q: kind %d, %+v, place %+v, index %d", c.text, l.kind, l.frame, place, l.index)
			continue
		}
		if before := c.text[:l.after]; !strings.HasSuffix(before, "]") && !isHex(before[len(before)-1]) || l.after < len(c.text) && isWord(c.text[l.after]) {
			t.Errorf("%q: the name would stand behind %q", c.text, before)
		}
	}
}

func TestOtherTextIsNoFrame(t *testing.T) {
	for _, text := range []string{
		"", " ", "#", "#x", "hello", "12", "3 errors at 0x1234", "deadline", "cafebabe-dead", "0x", "0xg", "0x12345678901234567",
		"RIP: 0010:do_fault+0x12/0x40 [mod]", " do_fault+0x12/0x40 [mod]", "Call Trace:", "[1] 12345", "[<x>] f", "7f12-7f13 rwxp",
		"path(x) [0x]", "(+0x1) [0x1", "thread", "threads 3", "Thread x", "image", "image 0x1", "image 0x1 0x2 xyz /p", "image 1 2 3",
		"0x1 - y <ab> /p", "0x1 - 0x2 name", "Processes: 3", "Binary stuff",
	} {
		if l := parseLine(text); l.kind != otherLine && l.kind != framePlain {
			t.Errorf("%q: kind %d, %+v", text, l.kind, l)
		}
	}
}

func TestLinesOfImagesAreKnownInManyShapes(t *testing.T) {
	for _, c := range []struct {
		text string
		want Image
	}{
		{"image 0x55d2c000 0x5000 ABCD /usr/bin/my prog", Image{ID: "abcd", Path: "/usr/bin/my prog", Load: 0x55d2c000, Size: 0x5000}},
		{"image 0x55d2c000 20480 - /p\r", Image{Path: "/p", Load: 0x55d2c000, Size: 20480}},
		{"image 0x55d2c000 - abcd", Image{ID: "abcd", Load: 0x55d2c000}},
		{"       0x100000000 -        0x100003fff +org.me.prog (1.0 - 1) <4C4C4444-5555-3144-A1F5-0123456789AB> /Applications/My App.app/prog",
			Image{ID: "4c4c444455553144a1f50123456789ab", Path: "/Applications/My App.app/prog", Load: 0x100000000, Size: 0x4000}},
		{"0x1a0f84000 - 0x1a1002fff libobjc.A.dylib arm64e  <4c4c44> /usr/lib/libobjc.A.dylib",
			Image{ID: "4c4c44", Path: "/usr/lib/libobjc.A.dylib", Arch: "arm64e", Load: 0x1a0f84000, Size: 0x7f000}},
		{"0x100000000 - ??? prog <4c4c44>", Image{ID: "4c4c44", Path: "prog", Load: 0x100000000}},
	} {
		if l := parseLine(c.text); l.kind != imageLine || l.image != c.want {
			t.Errorf("%q: kind %d, %+v, want %+v", c.text, l.kind, l.image, c.want)
		}
	}
}

func TestThreadsAreKnownInManyShapes(t *testing.T) {
	for _, c := range []struct{ text, tid, name string }{
		{"thread 1234 main loop", "1234", "main loop"},
		{"Thread 0 Crashed:", "0", "Crashed"},
		{"Thread 7:", "7", ""},
		{"                Stack trace of thread 1234:", "1234", ""},
		{"Thread 0:: Dispatch queue: com.apple.main-thread", "0", "Dispatch queue: com.apple.main-thread"},
		{"* thread #1, name = 'prog', stop reason = signal SIGSEGV", "1", "name = 'prog', stop reason = signal SIGSEGV"},
		{"Thread 2 (Thread 0x7ffff7d8a740 (LWP 12)):", "2", "(Thread 0x7ffff7d8a740 (LWP 12))"},
	} {
		if l := parseLine(c.text); l.kind != threadLine || l.tid != c.tid || l.name != c.name {
			t.Errorf("%q: kind %d, tid %q, name %q", c.text, l.kind, l.tid, l.name)
		}
	}
	if l := parseLine("#1  <signal handler called>"); l.kind != signalLine {
		t.Errorf("gdb's signal frame: kind %d", l.kind)
	}
}

func TestMappingsOfOneFileBecomeOneImage(t *testing.T) {
	const maps = `
55d2c0a0f000-55d2c0a10000 r--p 00000000 08:01 77 /usr/bin/prog
55d2c0a10000-55d2c0a11000 r-xp 00001000 08:01 77 /usr/bin/prog
55d2c0a11000-55d2c0a12000 r--p 00002000 08:01 77 /usr/bin/prog
55d2c0a12000-55d2c0a13000 r--p 00002000 08:01 77 /usr/bin/prog
55d2c0a13000-55d2c0a14000 rw-p 00003000 08:01 77 /usr/bin/prog
55d2c0a14000-55d2c0a15000 rw-p 00000000 00:00 0
55d2c1000000-55d2c1021000 rw-p 00000000 00:00 0          [heap]
7f0000001000-7f0000002000 r-xp 00026000 08:01 78         /usr/lib/my lib.so (deleted)
7f0000002000-7f0000003000 r--p 00000000 08:01 79         /usr/lib/a.so
7f0000003000-7f0000004000 r--p 00000000 08:01 79         /usr/lib/a.so`
	var j joiner
	var got []Image
	add := func(im *Image) {
		if im != nil {
			got = append(got, *im)
		}
	}
	for text := range strings.Lines(maps) {
		if l := parseLine(strings.TrimSuffix(text, "\n")); l.kind == mappingLine {
			add(j.add(l.mapping))
		}
	}
	add(j.flush())
	want := []Image{
		{Path: "/usr/bin/prog", Load: 0x55d2c0a0f000, Size: 0x5000},
		{Path: "[heap]", Load: 0x55d2c1000000, Size: 0x21000},
		{Path: "/usr/lib/my lib.so", Load: 0x7f0000001000, Size: 0x1000, Offset: 0x26000, Gone: true},
		{Path: "/usr/lib/a.so", Load: 0x7f0000002000, Size: 0x1000},
		{Path: "/usr/lib/a.so", Load: 0x7f0000003000, Size: 0x1000},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for k := range want {
		if got[k] != want[k] {
			t.Errorf("%+v, want %+v", got[k], want[k])
		}
	}
}

func FuzzParseLineStaysInsideTheLine(f *testing.F) {
	for _, text := range []string{
		"#3 0x55d2c0a1  (/usr/bin/prog+0x1f4b) (BuildId: abcd01)", "#03 pc 00012340  /system/lib64/libc.so", "3   a   0x0000000100003f4c 0x1 + 2",
		"0x1 - 0x2 a (1) <4C> /p", "p(f+0x1) [0x2]", "[<ffffffff81234567>] f", "image 0x1 2 ab /p", "1-2 r-xp 0 0:0 0 /p", "#1 <signal handler called>",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := parseLine(text)
		if l.after < 0 || l.after > len(text) || l.kind == frameLine && l.after == 0 {
			t.Errorf("%q: the name would stand at %d", text, l.after)
		}
		if l.kind == mappingLine && l.mapping.end <= l.mapping.start {
			t.Errorf("%q: %+v", text, l.mapping)
		}
	})
}
