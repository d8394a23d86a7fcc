package crash

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"
)

// smallDump is a minidump of two threads and an image that isn't at hand, as a seed.
func smallDump() []byte {
	d := newDumpWriter()
	system := make([]byte, 56)
	le.PutUint16(system, processorAMD64)
	le.PutUint32(system[20:], platformLinux)
	d.stream(streamSystem, system)
	const sp, load = 0x7fff0000, 0x400000
	stack := make([]byte, 256)
	for k := range 16 { // frame records that lead into each other, and return addresses
		le.PutUint64(stack[16*k:], sp+uint64(16*k)+16)
		le.PutUint64(stack[16*k+8:], load+0x100+uint64(k))
	}
	threads := le.AppendUint32(nil, 2)
	var context0 location
	for tid := range 2 {
		context := make([]byte, 1232)
		le.PutUint64(context[152:], sp)
		le.PutUint64(context[160:], sp)
		le.PutUint64(context[248:], load+0x10)
		context0 = d.put(context)
		threads = append(le.AppendUint32(threads, uint32(tid)), make([]byte, 20)...)
		threads = le.AppendUint64(threads, sp)
		threads = appendLocation(threads, d.put(stack))
		threads = appendLocation(threads, context0)
	}
	d.stream(streamThreads, threads)
	module := make([]byte, minidumpModuleSize)
	le.PutUint64(module, load)
	le.PutUint32(module[8:], 0x1000)
	le.PutUint32(module[20:], d.text("/bin/prog"))
	copy(module[76:], appendLocation(nil, d.put([]byte("LEpB0123456789abcdefghij"))))
	d.stream(streamModules, append(le.AppendUint32(nil, 1), module...))
	exception := make([]byte, 168)
	le.PutUint32(exception[8:], 11)
	copy(exception[160:], appendLocation(nil, context0))
	d.stream(streamException, exception)
	d.stream(streamLinuxMaps, []byte("00400000-00401000 r-xp 00000000 00:00 0 /bin/prog\n7fff0000-7fff1000 rw-p 00000000 00:00 0 [stack]\n"))
	texts := func(names ...string) location { // a count, and where each is
		list := le.AppendUint32(nil, uint32(len(names)/2))
		for _, name := range names {
			list = le.AppendUint32(list, d.put(append(le.AppendUint32(nil, uint32(len(name))), name...)).rva)
		}
		return d.put(list)
	}
	own := appendLocation(le.AppendUint32(nil, 1), texts("a text", "")) // of its two entries the list has one
	own = appendLocation(appendLocation(own, texts("exceptionName", "NSRangeException")), location{})
	of := append(le.AppendUint32(nil, 1), appendLocation(le.AppendUint32(nil, 0), d.put(own))...)
	info := appendLocation(make([]byte, 36), texts("prod", "prog", "ver", "1.2"))
	d.stream(streamCrashpadInfo, appendLocation(info, d.put(of)))
	d.stream(streamLinuxStatus, []byte("Name:\tprog\nPid:\t12\n"))
	return d.bytes()
}

// readAll reads and walks whatever can be. It must not panic, nor take long, nor lead anywhere.
func readAll(t testing.TB, data []byte) *Report {
	r, err := Read("it", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil
	}
	defer r.Close()
	for _, im := range r.Images { // no file of this machine is to be opened by what a fuzzer says
		im.opened = true
	}
	if err := r.Resolve(context.Background(), Options{MaxFrames: 1000}); err != nil {
		t.Fatal(err)
	}
	for _, th := range r.Threads {
		if th.End == "" {
			t.Fatalf("thread %d doesn't say how its stack ended", th.TID)
		}
		if len(th.Frames) > 1000 && th.End != "report" {
			t.Fatalf("%d frames", len(th.Frames))
		}
	}
	return r
}

func TestSmallDumpIsWalkedByFramePointers(t *testing.T) {
	r := readAll(t, smallDump())
	if r == nil || len(r.Threads) != 2 || !r.Threads[0].Crashed || r.Process.Name != "prog" || r.Process.PID != 12 {
		t.Fatalf("the report is %+v", r)
	}
	if got, want := fmt.Sprint(r.Annotations), "[{ prod prog} { ver 1.2} {prog  a text} {prog exceptionName NSRangeException}]"; got != want {
		t.Errorf("annotations are %v, want %v", got, want)
	}
	if n := len(r.Threads[0].Frames); n < 10 || r.Threads[0].Frames[1].By == ByContext {
		t.Errorf("%d frames: %+v", n, r.Threads[0].Frames)
	}
}

// Crashpad writes what si_code was; in Breakpad's dumps 0 mostly says that nobody looked.
func TestCodeOfASignalThatIsNotKnown(t *testing.T) {
	data := smallDump()
	if r := readAll(t, data); r.Reason.Text != "SIGSEGV (SI_USER)" {
		t.Errorf("Crashpad's reason is %+v", r.Reason)
	}
	at := bytes.Index(data, le.AppendUint32(nil, streamCrashpadInfo))
	le.PutUint32(data[at:], 0x47670003)
	if r := readAll(t, data); r.Reason.Text != "SIGSEGV at 0x0" {
		t.Errorf("Breakpad's reason is %+v", r.Reason)
	}
}

// A symbol server of Windows has a PDB under its name, GUID and age, and a program under its time and size.
func TestMinidumpOfWindowsNamesThePDBs(t *testing.T) {
	d := newDumpWriter()
	system := make([]byte, 56)
	le.PutUint16(system, processorI386)
	le.PutUint32(system[20:], 2)
	d.stream(streamSystem, system)
	d.stream(streamThreads, append(le.AppendUint32(nil, 1), make([]byte, minidumpThreadSize)...))
	module := make([]byte, minidumpModuleSize)
	le.PutUint64(module, 0x2a0000)
	le.PutUint32(module[8:], 0x9000)
	le.PutUint32(module[16:], 0x5ab38077)
	le.PutUint32(module[20:], d.text(`C:\b\crash.exe`))
	id := "RSDS\x9d\xd9\x49\x32\x40\x0c\x31\x49\x86\x10\xf4\xe4\xfb\x0b\x69\x36\x01\x00\x00\x00C:\\b\\crash.pdb\x00"
	copy(module[76:], appendLocation(nil, d.put([]byte(id))))
	d.stream(streamModules, append(le.AppendUint32(nil, 1), module...))
	r := readAll(t, d.bytes())
	// What symbolicator's published output has for a dump of this program.
	if im := r.Images[0]; im.ID != "3249d99d0c4049318610f4e4fb0b69361" || im.CodeID != "5ab380779000" || im.DebugFile != "crash.pdb" || im.Name() != "crash.exe" {
		t.Errorf("the image is %+v", im)
	}
}

func TestCutOffMinidumpGivesWhatPrecedesTheCut(t *testing.T) {
	data := smallDump()
	// The directory is at the end in the seed; as Crashpad writes it, it stands first.
	count, rva := binary.LittleEndian.Uint32(data[8:]), binary.LittleEndian.Uint32(data[12:])
	moved := append(bytes.Clone(data), data[rva:rva+12*count]...)
	opened := 0
	for cut := range moved {
		if r := readAll(t, moved[:cut:cut]); r != nil {
			opened++
		}
	}
	if opened == 0 {
		t.Error("no cut dump could be read")
	}
}

func TestDamagedMinidumpIsRefusedOrReadWithinItsBounds(t *testing.T) {
	data := smallDump()
	for at := range data {
		for _, with := range []byte{data[at] ^ 1<<(at%8), 0xff} {
			damaged := bytes.Clone(data)
			damaged[at] = with
			readAll(t, damaged)
		}
	}
}

// A dump of a few megabytes may not ask for more time or memory than one of its size deserves.
func TestDumpWithThousandsOfThreadsOverOneStackEnds(t *testing.T) {
	d := newDumpWriter()
	system := make([]byte, 56)
	le.PutUint16(system, processorAMD64)
	le.PutUint32(system[20:], platformLinux)
	d.stream(streamSystem, system)
	const sp, load, size = 0x7fff0000, 0x400000, 1 << 20
	stack := make([]byte, size)
	for k := 0; k < size; k += 16 {
		le.PutUint64(stack[k:], sp+uint64(k)+16)
		le.PutUint64(stack[k+8:], load+0x100)
	}
	memory := d.put(stack)
	context := make([]byte, 1232)
	le.PutUint64(context[152:], sp)
	le.PutUint64(context[160:], sp)
	le.PutUint64(context[248:], load)
	at := d.put(context)
	const count = 2000
	threads := le.AppendUint32(nil, count)
	for tid := range count {
		threads = append(le.AppendUint32(threads, uint32(tid)), make([]byte, 20)...)
		threads = le.AppendUint64(threads, sp)
		threads = appendLocation(threads, memory)
		threads = appendLocation(threads, at)
	}
	d.stream(streamThreads, threads)
	module := make([]byte, minidumpModuleSize)
	le.PutUint64(module, load)
	le.PutUint32(module[8:], 0x1000)
	d.stream(streamModules, append(le.AppendUint32(nil, 1), module...))
	data := d.bytes()
	r, err := Read("it", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := contextWithin(t)
	defer cancel()
	if err := r.Resolve(ctx, Options{}); err != nil {
		t.Fatal(err)
	}
	frames := 0
	for _, th := range r.Threads {
		frames += len(th.Frames)
	}
	if frames > maxFrames+count*leastFrames {
		t.Errorf("%d frames", frames)
	}
}

// contextWithin bounds a test that would else not end.
func contextWithin(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(context.Background(), 5*time.Minute)
}

func fuzz(f *testing.F, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { readAll(t, data) })
}

func FuzzMinidump(f *testing.F)       { fuzz(f, string(smallDump())) }
func FuzzAppleText(f *testing.F)      { fuzz(f, appleReport) }
func FuzzAppleIPS(f *testing.F)       { fuzz(f, ipsHead+ipsBody, ipsBody) }
func FuzzTombstone(f *testing.F)      { fuzz(f, tombstoneReport) }
func FuzzTombstoneProto(f *testing.F) { fuzz(f, string(tombstoneProto())) }
func FuzzMachOCore(f *testing.F)      { fuzz(f, string(smallMachOCore())) }
func FuzzKSCrash(f *testing.F) {
	fuzz(f, `{"report":{"type":"standard"},`+ksSystem+ksImages+`"crash":{"error":{"type":"mach"},"threads":`+ksThreads+`},"recrash_report":{"report":{},"crash":{}}}`)
}
