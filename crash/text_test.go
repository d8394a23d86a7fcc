package crash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// readString reads a report from memory and resolves it without symbols.
func readString(t testing.TB, text string) *Report {
	t.Helper()
	r, err := Read("report", strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Resolve(context.Background(), Options{}); err != nil {
		t.Fatal(err)
	}
	return r
}

// stackText writes a stack shortly: names, or image+offset.
func stackText(th *Thread) string {
	var out []string
	for k := range th.Frames {
		f := &th.Frames[k]
		text := f.Function
		if text == "" && f.Image != nil {
			text = fmt.Sprintf("%s+%#x", f.Image.Name(), f.Offset)
		} else if text == "" {
			text = fmt.Sprintf("%#x", f.Address)
		}
		if f.File != "" {
			text += fmt.Sprintf("@%s:%d", f.File, f.Line)
		}
		if f.Inlined {
			text = "[" + text + "]"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func register(th *Thread, name string) uint64 {
	for _, r := range th.Registers {
		if r.Name == name {
			return r.Value
		}
	}
	return 0
}

const appleReport = `Incident Identifier: 5C32DF84-31A0-43E7-87D0-239F7F594940
Hardware Model:      iPhone14,2
Process:             My Prog [4902]
Path:                /private/var/containers/My Prog.app/My Prog
Code Type:           ARM-64 (Native)
OS Version:          iPhone OS 15.1 (19B74)
Report Version:      104

Exception Type:  EXC_BAD_ACCESS (SIGSEGV)
Exception Subtype: KERN_INVALID_ADDRESS at 0x0000000000000088
Triggered by Thread:  1

Application Specific Information:
selector name: respondsToSelector:

Last Exception Backtrace:
(0x180010024 0x100004010)

Thread 0 name:  Dispatch queue: com.apple.main-thread
Thread 0:
0   libsystem_kernel.dylib        	0x00000001b8a401d8 mach_msg_trap + 8
1   My Prog                       	0x0000000100004120 0x100000000 + 16672
2   dyld                          	0x00000001b3fbadcc 0x1b3fb5000 + 24012

Thread 1 Crashed:: Worker
0   My Prog                       	0xcafe000100005000 [Some thing:with:] + 32 (Thing.m:17) [inlined]
1   My Prog                       	0x0000000100005000 work(int, char) + 4 (work.cc:5)
2   ???                           	0x0000000054485244 0x0 + 0

Thread 1 crashed with ARM Thread State (64-bit):
    x0: 0x0000000000000088   x1: 0x0000000000000002   lr: 0x0000000100005abc
    sp: 0x000000016b56a2e0   pc: 0x0000000100005000 cpsr: 0x60001000

Binary Images:
       0x100000000 -        0x10000ffff  My Prog arm64  <2d903291397d3d14bfca52c7fb8c5e00> /private/var/containers/My Prog.app/My Prog
       0x180000000 -        0x1800fffff  CoreFoundation arm64e  <6deccee4a0523ea4bb67957b06f53ad1> /System/Library/CoreFoundation
`

func TestApplesTextIsRead(t *testing.T) {
	r := readString(t, appleReport)
	if r.Format != AppleText || r.OS != "ios" || r.Arch != "arm64" || r.Process.Name != "My Prog" || r.Process.PID != 4902 {
		t.Errorf("%v of %v/%v, process %+v", r.Format, r.OS, r.Arch, r.Process)
	}
	if r.Reason.Text != "EXC_BAD_ACCESS (SIGSEGV) at 0x88" || len(r.Reason.Details) != 2 {
		t.Errorf("the reason is %+v", r.Reason)
	}
	if len(r.Threads) != 3 || !r.Threads[0].Crashed || r.Threads[0].TID != 1 || r.Threads[0].Name != "Worker" {
		t.Fatalf("threads are %+v", r.Threads)
	}
	// The image of ??? is none, and a signature isn't a part of an address.
	if got, want := stackText(r.Threads[0]), "[[Some thing:with:]@Thing.m:17] work(int, char)@work.cc:5 0x54485244"; got != want {
		t.Errorf("the crashed stack is %v, want %v", got, want)
	}
	if f := r.Threads[0].Frames[0]; f.Address != 0x100005000 || f.By != ByReport {
		t.Errorf("the first frame is %+v", f)
	}
	if v := register(r.Threads[0], "lr"); v != 0x100005abc || register(r.Threads[0], "x1") != 2 {
		t.Errorf("registers are %+v", r.Threads[0].Registers)
	}
	if got, want := stackText(r.Threads[2]), "mach_msg_trap My Prog+0x4120 dyld+0x5dcc"; got != want {
		t.Errorf("the other stack is %v, want %v", got, want)
	}
	if got, want := stackText(r.Threads[1]), "CoreFoundation+0x10024 My Prog+0x4010"; got != want {
		t.Errorf("the exception's stack is %v, want %v", got, want)
	}
	if r.Threads[1].Frames[0].Exact || !r.Threads[0].Frames[1].Exact {
		t.Errorf("an exception's addresses are all return addresses, a thread's first one is none")
	}
	if im := r.Images[0]; im.ID != "2d903291397d3d14bfca52c7fb8c5e00" || im.Load != 0x100000000 || im.Size != 0x10000 || im.Arch != "arm64" || im.Name() != "My Prog" {
		t.Errorf("the image is %+v", im)
	}
	if m := r.Missing(); len(m) != 2 || m[0].ID != r.Images[0].ID {
		t.Errorf("missing is %+v", m)
	}
}

const ipsHead = `{"app_name":"prog","bug_type":"309","os_version":"macOS 14.2 (23C64)","incident_id":"F71CCC53"}
`

const ipsBody = `{"pid":748,"procName":"prog","procPath":"\/usr\/local\/bin\/prog","cpuType":"ARM-64","osVersion":{"train":"macOS 14.2","build":"23C64"},
 "exception":{"codes":"0x0000000000000001, 0x0000000000000010","type":"EXC_BAD_ACCESS","signal":"SIGSEGV","subtype":"KERN_INVALID_ADDRESS at 0x0000000000000010"},
 "termination":{"namespace":"SIGNAL","code":11,"indicator":"Segmentation fault: 11"},"asi":{"libsystem_c.dylib":["abort() called"]},
 "faultingThread":1,
 "instructionByteStream":{"beforePC":"wANf1g==","atPC":"AAEAucADX9Y="},
 "threads":[
  {"id":10,"queue":"com.apple.main-thread","frames":[{"imageOffset":4568,"symbol":"mach_msg2_trap","symbolLocation":8,"imageIndex":1}]},
  {"triggered":true,"id":11,"name":"worker","threadState":{"flavor":"ARM_THREAD_STATE64","x":[{"value":1},{"value":18446744073709551615}],"lr":{"value":4294983684},
    "pc":{"value":4294983680,"matchesCrashFrame":1}},
   "frames":[{"imageOffset":16384,"sourceLine":7,"sourceFile":"a.c","symbol":"deep","inline":true,"imageIndex":0},
     {"imageOffset":16384,"sourceLine":9,"sourceFile":"a.c","symbol":"outer","imageIndex":0,"symbolLocation":4},
     {"imageOffset":42,"imageIndex":2}]}],
 "lastExceptionBacktrace":[{"imageOffset":100,"symbol":"__exceptionPreprocess","imageIndex":1}],
 "usedImages":[
  {"source":"P","arch":"arm64","base":4294967296,"size":65536,"uuid":"004cd10c-9ab5-3df6-b6af-a18ad3e128c8","path":"\/usr\/local\/bin\/prog","name":"prog"},
  {"source":"S","arch":"arm64e","base":7929589760,"size":233472,"uuid":"39e7c080-2998-37f3-9a0b-887dc608caf0","path":"\/usr\/lib\/system\/libsystem_kernel.dylib"},
  {"size":0,"source":"A","base":0,"uuid":"00000000-0000-0000-0000-000000000000"}]}`

func TestApplesJSONIsReadWithBothPartsAndWithTheSecondAlone(t *testing.T) {
	for _, text := range []string{ipsHead + ipsBody, ipsBody} {
		r := readString(t, text)
		if r.Format != IPS || r.OS != "macos" || r.Arch != "arm64" || r.Process.PID != 748 || r.Version != "macOS 14.2 (23C64)" {
			t.Errorf("%v of %v/%v %v, process %+v", r.Format, r.OS, r.Arch, r.Version, r.Process)
		}
		if r.Reason.Text != "EXC_BAD_ACCESS (SIGSEGV) at 0x10" || !strings.Contains(strings.Join(r.Reason.Details, ";"), "libsystem_c.dylib: abort() called") {
			t.Errorf("the reason is %+v", r.Reason)
		}
		if len(r.Threads) != 3 || r.Threads[0].TID != 11 || !r.Threads[0].Crashed || r.Threads[0].Name != "worker" || r.Threads[1].Name != "com.apple.main-thread" {
			t.Fatalf("threads are %+v", r.Threads)
		}
		if got, want := stackText(r.Threads[0]), "[deep@a.c:7] outer@a.c:9 0x2a"; got != want {
			t.Errorf("the crashed stack is %v, want %v", got, want)
		}
		if f := r.Threads[0].Frames[1]; f.Address != 0x100004000 || f.Offset != 0x4000 || f.Image.ID != "004cd10c9ab53df6b6afa18ad3e128c8" {
			t.Errorf("a frame is %+v", f)
		}
		if register(r.Threads[0], "x1") != 1<<64-1 || register(r.Threads[0], "pc") != 0x100004000 {
			t.Errorf("registers are %+v", r.Threads[0].Registers)
		}
		if got := stackText(r.Threads[2]); got != "__exceptionPreprocess" || r.Threads[2].Frames[0].Exact {
			t.Errorf("the last exception is %v", got)
		}
		if len(r.Images) != 2 {
			t.Errorf("%d images, want the two that are files", len(r.Images))
		}
		if len(r.Code) != 3 || r.Code[0].Text != "ret" || !r.Code[1].At || r.Code[1].Text != "str w0, [x8]" {
			t.Errorf("the code is %+v", r.Code)
		}
	}
}

// An old system puts the text behind the line of JSON.
func TestApplesTextBehindALineOfJSONIsRead(t *testing.T) {
	r := readString(t, `{"bug_type":"109","os_version":"iPhone OS 14.1"}`+"\n"+appleReport)
	if r.Format != AppleText || len(r.Threads) != 3 {
		t.Errorf("%v with %d threads", r.Format, len(r.Threads))
	}
}

const ksImages = `"binary_images":[{"cpu_type":16777228,"cpu_subtype":2,"image_addr":4294967296,"image_size":65536,"name":"/app/Prog","uuid":"A8E0E7C4-42CA-3F41-8B78-9A65854ADB0C"}],`

const ksThreads = `[{"index":0,"crashed":false,"current_thread":true,"dispatch_queue":"com.apple.main-thread","backtrace":{"contents":[],"skipped":0}},
 {"index":3,"name":"worker","crashed":true,"backtrace":{"contents":[
   {"instruction_addr":4294983680,"object_addr":4294967296,"object_name":"Prog","symbol_addr":4294983672,"symbol_name":"-[Crasher crash]"},
   {"instruction_addr":4294983700,"symbol_name":"<redacted>"}],"skipped":2},
  "registers":{"basic":{"pc":4294983680,"x0":18446744073709551615,"x10":7}}}]`

const ksSystem = `"system":{"system_name":"iOS","system_version":"16.0","os_version":"20A362","cpu_arch":"arm64e","process_id":55,"process_name":"Prog"},`

func TestKSCrashsReportsAreRead(t *testing.T) {
	standard := `{"report":{"type":"standard","process_name":"Prog"},` + ksSystem + ksImages +
		`"crash":{"diagnosis":"Attempted to dereference null pointer.","error":{"type":"mach","address":16,"mach":{"exception_name":"EXC_BAD_ACCESS","code_name":"KERN_INVALID_ADDRESS"},
		"signal":{"name":"SIGSEGV"}},"threads":` + ksThreads + `}}`
	r := readString(t, standard)
	if r.Format != KSCrash || r.OS != "ios" || r.Arch != "arm64" || r.Process.PID != 55 || r.Reason.Text != "EXC_BAD_ACCESS (KERN_INVALID_ADDRESS) at 0x10" {
		t.Errorf("%v of %v/%v, process %+v, reason %+v", r.Format, r.OS, r.Arch, r.Process, r.Reason)
	}
	first := r.Threads[0]
	if got := stackText(first); len(r.Threads) != 2 || !first.Crashed || first.TID != 3 || got != "-[Crasher crash] Prog+0x4014" || !strings.Contains(first.EndSays, "2 frames") {
		t.Errorf("the crashed thread is %v: %+v", got, first)
	}
	if register(first, "x0") != 1<<64-1 || first.Registers[1].Name != "x10" {
		t.Errorf("registers are %+v", first.Registers)
	}
	if im := r.Images[0]; im.ID != "a8e0e7c442ca3f418b789a65854adb0c" || im.Arch != "arm64e" {
		t.Errorf("the image is %+v", im)
	}

	user := `{"report":{"type":"standard"},` + ksSystem + `"crash":{"error":{"type":"user","reason":"bad state",
		"user_reported":{"name":"ScriptError","language":"lua","line_of_code":"a.lua:3","backtrace":["f at a.lua:3","main at a.lua:9"]}},"threads":` + ksThreads + `}}`
	r = readString(t, user)
	last := r.Threads[len(r.Threads)-1]
	if r.Reason.Text != "ScriptError" || stackText(last) != "f at a.lua:3 main at a.lua:9" || !strings.Contains(last.State, "lua") {
		t.Errorf("the user's report: %+v, %v", r.Reason, stackText(last))
	}

	minimal := `{"report":{"type":"minimal","process_name":"Prog"},"crash":{"error":{"type":"signal","signal":{"name":"SIGABRT"}},
		"crashed_thread":{"index":5,"backtrace":{"contents":[{"instruction_addr":77,"symbol_name":"abort"}]}}}`
	r = readString(t, minimal+"}")
	if len(r.Threads) != 1 || !r.Threads[0].Crashed || stackText(r.Threads[0]) != "abort" || r.Process.Name != "Prog" || r.Reason.Signal != "SIGABRT" {
		t.Errorf("the minimal report: %+v, %v", r.Reason, stackText(r.Threads[0]))
	}

	// Whichever of the two holds the other, the crash that was reported comes first.
	for _, text := range []string{
		strings.TrimSuffix(standard, "}") + `,"recrash_report":` + minimal + "}}",
		minimal + `,"recrash_report":` + standard + "}",
	} {
		r = readString(t, text)
		if len(r.Threads) != 3 || r.Threads[0].TID != 3 || !strings.Contains(r.Threads[2].State, "while the crash was reported") ||
			!strings.HasPrefix(r.Reason.Text, "EXC_BAD_ACCESS") || !strings.Contains(strings.Join(r.Reason.Details, ";"), "while this was reported: SIGABRT") {
			t.Errorf("the report of a crash in the handler: %+v, %d threads", r.Reason, len(r.Threads))
		}
	}
}

const tombstoneReport = `*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***
Build fingerprint: 'google/raven/raven:13/TQ1A:user/release-keys'
Revision: 'MP1.0'
ABI: 'arm64'
Timestamp: 2023-01-30 10:35:04.588+0100
Cmdline: com.example.prog
pid: 17946, tid: 17949, name: my worker  >>> com.example.prog <<<
uid: 10332
signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x000000000000000c
Cause: null pointer dereference
Abort message: 'it failed'
    x0  000000000000000c  x1  0000000000000001  x29 0000007fc91522d0
    lr  0000007da81396c0  sp  0000007fc91522b0  pc  0000007da8139700  pst 0000000060001000

2 total frames
backtrace:
      #00 pc 0000000000042c9c  /data/app/base.apk!libfoo.so (offset 0x1000) (Foo::bar(int)+168) (BuildId: 0123456789abcdef0123456789abcdef01234567)
      #01 pc 00000000000b7b7c  /apex/com.android.runtime/lib64/bionic/libc.so (__pthread_start(void*)+264) (BuildId: ffff56789abcdef0123456789abcdef0)
      #02 pc 0000000000000010  <anonymous:7fff0000>

memory near x0 ([anon:stack]):
    0000007fc91522a0 0000000000000000 0000000000000000  ................

memory near pc (/data/app/base.apk!libfoo.so):
    0000007da81396f0 d503201fd503201f d503201fd503201f  . ... ... ... ..
    0000007da8139700 d503201fb9400000 d65f03c0d503201f  ..@.. ... ..._.

--- --- --- --- --- --- --- --- --- --- --- --- --- --- --- ---
pid: 17946, tid: 17950, name: other  >>> com.example.prog <<<
    x0  0000000000000001  x1  0000000000000002

backtrace:
      #00 pc 0000000000052c9c  /apex/com.android.runtime/lib64/bionic/libc.so (syscall+28) (BuildId: ffff56789abcdef0123456789abcdef0)
`

func TestTombstonesAreRead(t *testing.T) {
	var logged strings.Builder
	for line := range strings.Lines(tombstoneReport) {
		logged.WriteString("01-30 10:35:04.600 17960 17960 F DEBUG   : " + line)
	}
	for _, text := range []string{tombstoneReport, logged.String()} {
		r := readString(t, text)
		if r.Format != Tombstone || r.OS != "android" || r.Arch != "arm64" || r.Process.PID != 17946 || r.Process.Name != "com.example.prog" {
			t.Errorf("%v of %v/%v, process %+v", r.Format, r.OS, r.Arch, r.Process)
		}
		if r.Reason.Text != "SIGSEGV (SEGV_MAPERR) at 0xc" || len(r.Reason.Details) != 2 {
			t.Errorf("the reason is %+v", r.Reason)
		}
		if len(r.Threads) != 2 || !r.Threads[0].Crashed || r.Threads[0].TID != 17949 || r.Threads[0].Name != "my worker" || r.Threads[1].Crashed {
			t.Fatalf("threads are %+v", r.Threads)
		}
		if got, want := stackText(r.Threads[0]), "Foo::bar(int) __pthread_start(void*) 0x10"; got != want {
			t.Errorf("the crashed stack is %v, want %v", got, want)
		}
		if f := r.Threads[0].Frames[0]; f.Image == nil || f.Image.ID != "0123456789abcdef0123456789abcdef01234567" || f.Image.Name() != "libfoo.so" || f.Offset != 0x42c9c {
			t.Errorf("the first frame is %+v", f)
		}
		if register(r.Threads[0], "pst") != 0x60001000 || len(r.Threads[0].Registers) != 7 {
			t.Errorf("registers are %+v", r.Threads[0].Registers)
		}
		if got := stackText(r.Threads[1]); got != "syscall" || len(r.Images) != 2 {
			t.Errorf("the other stack is %v; %d images", got, len(r.Images))
		}
		if got := codeText(r); got != "nop nop nop nop =>ldr w0, [x0] nop nop ret" || r.Time != "2023-01-30 10:35:04.588+0100" {
			t.Errorf("the code at the PC is %q, the time %q", got, r.Time)
		}
	}
}

// codeText is the code around the PC in a line.
func codeText(r *Report) string {
	var out []string
	for _, in := range r.Code {
		if in.At {
			out = append(out, "=>"+in.Text)
		} else {
			out = append(out, in.Text)
		}
	}
	return strings.Join(out, " ")
}

func TestKSCrashsReportsWithoutStacks(t *testing.T) {
	r := readString(t, `{"report":{"type":"standard","timestamp":1716226564474658},`+ksSystem+`"crash":{"error":{"type":"memory_termination","signal":{"name":"SIGKILL"}},"threads":[]}}`)
	if len(r.Threads) != 0 || r.Reason.Text != "SIGKILL (memory_termination)" || r.Time != "2024-05-20T17:36:04Z" {
		t.Errorf("reason %+v, time %q, %d threads", r.Reason, r.Time, len(r.Threads))
	}
	r = readString(t, `{"report":{"type":"standard"},`+ksSystem+`"crash":{"error":{"type":"cpp_exception","cpp_exception":{"name":"N4prog9ExceptionE"}},"threads":`+ksThreads+`}}`)
	if r.Reason.Text != "prog::Exception" {
		t.Errorf("the reason is %+v", r.Reason)
	}
}

func TestKSCrashsImagesTellWhichX86ItIs(t *testing.T) {
	system := strings.Replace(ksSystem, "arm64e", "x86", 1)
	images := `"binary_images":[{"image_addr":4294967296,"image_size":4096,"name":"/Prog","cpu_type":16777223}],`
	r := readString(t, `{"report":{},`+system+images+`"crash":{"error":{"type":"signal","signal":{"name":"SIGSEGV"}},"threads":`+ksThreads+`}}`)
	if r.Arch != "amd64" {
		t.Errorf("the architecture is %v", r.Arch)
	}
}

func TestAppleTextWithoutItsHeadIsRead(t *testing.T) {
	at := strings.Index(appleReport, "\nThread 0")
	r := readString(t, appleReport[at+1:])
	if r.Format != AppleText || len(r.Threads) < 2 || len(r.Images) == 0 {
		t.Errorf("%v with %d threads and %d images", r.Format, len(r.Threads), len(r.Images))
	}
}

func TestAppleFramesWithPlaceAndName(t *testing.T) {
	var f rawFrame
	f.said("0x5f000 + 30888 (-[Crasher doAbort(x)] + 8)")
	if f.function != "-[Crasher doAbort(x)]" || f.offset != 8 {
		t.Errorf("%+v", f)
	}
	f = rawFrame{}
	if f.said("0x5f000 + 30888"); f.function != "" || f.offset != 30888 {
		t.Errorf("%+v", f)
	}
}

func TestTombstoneWithoutItsFirstLinesIsRead(t *testing.T) {
	_, rest, _ := strings.Cut(tombstoneReport, "Revision:")
	head, tail, _ := strings.Cut("Revision:"+rest, "pid: ")
	_, tail, _ = strings.Cut(tail, "\n")
	r := readString(t, head+tail)
	if len(r.Threads) != 2 || !r.Threads[0].Crashed || stackText(r.Threads[0]) != "Foo::bar(int) __pthread_start(void*) 0x10" {
		t.Errorf("threads are %+v", r.Threads)
	}
}

func TestOtherFilesAreNoReports(t *testing.T) {
	for _, text := range []string{"", "hello\n", "{}", `{"a": 1}`, "MDMP", "\x7fELF", "\xcf\xfa\xed\xfe", "[1, 2]"} {
		if r, err := Read("it", strings.NewReader(text), int64(len(text))); err == nil || r != nil || !errors.Is(err, ErrUnknownFormat) && !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
