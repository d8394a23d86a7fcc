package reel

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

var testHeader = Header{
	Version:     Version,
	StartUnixNS: 1_700_000_000_123_456_789,
	Clock:       Clock{Mode: ClockFull, TicksPerSecond: 1e9, BaseTick: 1000, BaseUnixNS: 1_700_000_000_000_000_000},
	PID:         4242,
	Command:     []string{"/bin/prog", "-x", "", "with space\xff"},
	Exe:         "/bin/prog",
	Host:        "host",
	Arch:        "amd64",
	Tool:        "callreel test",
}

func create(t *testing.T, h Header) (*Writer, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "test.reel")
	w, err := Create(name, h, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w, name
}

func open(t *testing.T, name string) *File {
	t.Helper()
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// reopen ends the writing of a reel and opens it for the length of the test.
func reopen(t *testing.T, w *Writer, path string) *File {
	t.Helper()
	realtest.Must(t, w.Close())
	f, err := Open(path)
	realtest.Must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func addThread(t *testing.T, w *Writer, th Thread) *ThreadWriter {
	t.Helper()
	tw, err := w.Thread(th)
	realtest.Must(t, err)
	return tw
}

// eventsOf reads a thread and tells where events were lost.
func eventsOf(f *File, key uint32) (events []Event, lostAt []int) {
	f.ReadThread(key, func(batch []Event, lost bool) bool {
		if lost {
			lostAt = append(lostAt, len(events))
		}
		events = append(events, batch...)
		return true
	})
	return events, lostAt
}

func TestEverythingWrittenIsReadBack(t *testing.T) {
	w, name := create(t, testHeader)
	image := Image{Path: "/lib/libc.so.6", ID: "c0ffee", Arch: "amd64", Slide: 0x7f0000000000, Base: 0x7f0000001000, End: 0x7f0000200000}
	id, err := w.AddImage(image)
	realtest.Must(t, err)
	if id != 1 {
		t.Fatalf("first image has ID %d", id)
	}
	functions := make([]Function, 30_000) // more than one chunk of them
	for i := range functions {
		functions[i] = Function{Name: strings.Repeat("n", i%90) + "\xfe\x00", Image: 1, Addr: uint64(i) << 40, Size: uint64(i), Tier: Tier(i % 4)}
	}
	first, err := w.AddFunctions(functions[:29_000])
	realtest.Must(t, err)
	more, err := w.AddFunctions(functions[29_000:])
	realtest.Must(t, err)
	if first != 1 || more != 29_001 {
		t.Fatalf("function IDs start at %d and %d", first, more)
	}
	a := addThread(t, w, Thread{TID: 7, Process: 7, StartTime: 99, Name: "main"})
	b := addThread(t, w, Thread{TID: 7, Process: 7, StartTime: 101, Name: "again"})
	events := newProgram(5, 200).run(300_000)
	for rest := events; len(rest) > 0; {
		n := min(len(rest), 7777)
		realtest.Must(t, a.Append(rest[:n]))
		realtest.Must(t, b.Append(rest[:n/2]))
		rest = rest[n:]
	}
	realtest.Must(t, b.Dropped(5, 4, 12345))
	realtest.Must(t, b.Dropped(1, 1, 12399))
	realtest.Must(t, b.Append(events[:3]))
	realtest.Must(t, b.Dropped(7, 7, 20000))
	realtest.Must(t, a.Rename("renamed"))
	realtest.Must(t, w.ClockPair(2000, 1_700_000_000_000_001_000))
	realtest.Must(t, w.Close())
	realtest.Must(t, w.Close())

	f := open(t, name)
	if !f.Closed() || len(f.Damage()) != 0 {
		t.Fatalf("closed %v, damage %v", f.Closed(), f.Damage())
	}
	if !reflect.DeepEqual(f.Header(), testHeader) {
		t.Errorf("header %+v, want %+v", f.Header(), testHeader)
	}
	if got, ok := f.Image(1); !ok || got != image {
		t.Errorf("image %+v, want %+v", got, image)
	}
	for i, want := range functions {
		if got, ok := f.Function(uint32(i + 1)); !ok || got != want {
			t.Fatalf("function %d: %+v, want %+v", i+1, got, want)
		}
	}
	for _, id := range []uint32{0, 30_001, MaxID, 1<<32 - 1} {
		if fn, ok := f.Function(id); ok {
			t.Errorf("function %d exists: %+v", id, fn)
		}
	}
	threads := f.Threads()
	want := []Thread{{Key: 1, TID: 7, Process: 7, StartTime: 99, Name: "renamed"}, {Key: 2, TID: 7, Process: 7, StartTime: 101, Name: "again"}}
	if !slices.Equal(threads, want) {
		t.Errorf("threads %+v, want %+v", threads, want)
	}
	got, lost := eventsOf(f, 1)
	if !slices.Equal(got, events) || lost != nil {
		t.Errorf("thread 1: %d events differ from the %d appended, or were lost at %v", len(got), len(events), lost)
	}
	half := f.threads[1].events
	wantDrops := []Drop{{Thread: 2, Entries: 6, Exits: 5, Tick: 12345, After: half - 3}, {Thread: 2, Entries: 7, Exits: 7, Tick: 20000, After: half}}
	if !slices.Equal(f.Drops(), wantDrops) {
		t.Errorf("drops %+v, want %+v", f.Drops(), wantDrops)
	}
	if stats := w.Stats(); stats.Events != uint64(len(events))+half || stats.Bytes != f.Size() || f.Events() != stats.Events {
		t.Errorf("writer counted %+v, file has %d events and %d bytes", stats, f.Events(), f.Size())
	}
}

func TestReelIsValidFromTheStartAndAfterEachFlush(t *testing.T) {
	w, name := create(t, testHeader)
	defer w.Close()
	if f := open(t, name); f.Closed() || len(f.Damage()) != 0 || f.Header().PID != 4242 {
		t.Errorf("just created: closed %v, damage %v, header %+v", f.Closed(), f.Damage(), f.Header())
	}
	tw := addThread(t, w, Thread{TID: 1})
	events := newProgram(2, 50).run(1000)
	realtest.Must(t, tw.Append(events[:600]))
	realtest.Must(t, w.Flush())
	realtest.Must(t, tw.Append(events[600:]))
	if got, _ := eventsOf(open(t, name), 1); !slices.Equal(got, events[:600]) {
		t.Errorf("after the first flush %d events are readable, want 600", len(got))
	}
	realtest.Must(t, w.Flush())
	f := open(t, name)
	if got, lost := eventsOf(f, 1); !slices.Equal(got, events) || lost != nil || len(f.Damage()) != 0 {
		t.Errorf("after the second flush %d events, lost at %v, damage %v", len(got), lost, f.Damage())
	}
}

func TestCreateDoesNotOverwrite(t *testing.T) {
	w, name := create(t, testHeader)
	realtest.Must(t, w.Close())
	if _, err := Create(name, testHeader, Options{}); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "--force") {
		t.Errorf("creating it again: %v", err)
	}
	w, err := Create(name, testHeader, Options{Force: true})
	realtest.Must(t, err)
	realtest.Must(t, w.Close())
}

func TestThreadsMayBeAppendedToAtOnce(t *testing.T) {
	w, name := create(t, testHeader)
	events := newProgram(8, 100).run(200_000)
	var wg sync.WaitGroup
	for i := range 4 {
		tw := addThread(t, w, Thread{TID: i})
		wg.Go(func() {
			for rest := events[i*1000:]; len(rest) > 0; rest = rest[min(5000, len(rest)):] {
				if err := tw.Append(rest[:min(5000, len(rest))]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 10 {
		realtest.Must(t, w.Flush())
	}
	wg.Wait()
	realtest.Must(t, w.Close())
	f := open(t, name)
	for i := range 4 {
		if got, lost := eventsOf(f, uint32(i+1)); !slices.Equal(got, events[i*1000:]) || lost != nil {
			t.Errorf("thread %d: %d events, want %d; lost at %v", i, len(got), len(events)-i*1000, lost)
		}
	}
}

// fullDisk takes so many bytes and then behaves as a full disk.
type fullDisk struct {
	*os.File
	room     int
	truncate error
}

func (d *fullDisk) Write(b []byte) (int, error) {
	n := min(len(b), d.room)
	d.room -= n
	if k, err := d.File.Write(b[:n]); err != nil {
		return k, err
	}
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (d *fullDisk) Truncate(size int64) error {
	if d.truncate != nil {
		return d.truncate
	}
	return d.File.Truncate(size)
}

func TestFullDiskLeavesAReadableReel(t *testing.T) {
	events := newProgram(11, 100).run(400_000)
	for _, truncate := range []error{nil, syscall.EIO} {
		name := filepath.Join(t.TempDir(), "full.reel")
		file, err := os.Create(name)
		realtest.Must(t, err)
		w, err := NewWriter(name, &fullDisk{File: file, room: 300_000, truncate: truncate}, testHeader)
		realtest.Must(t, err)
		tw := addThread(t, w, Thread{TID: 1})
		err = tw.Append(events)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("append to a full disk: %v", err)
		}
		if err := tw.Append(events); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("append after the error: %v", err)
		}
		if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("close after the error: %v", err)
		}
		f := open(t, name)
		got, _ := eventsOf(f, 1)
		if len(got) < chunkEvents || !slices.Equal(got, events[:len(got)]) {
			t.Errorf("%d events are readable", len(got))
		}
		if damaged := len(f.Damage()) != 0; damaged != (truncate != nil) {
			t.Errorf("truncate %v: damage %v", truncate, f.Damage())
		}
	}
}

// A thread that ended takes its open calls with it; one that says that it ended after the recording doesn't.
func TestOpenCallsEndWithTheirThread(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ends.reel")
	w, err := Create(path, Header{Clock: Clock{TicksPerSecond: 1e9, BaseTick: 1000}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	im, err := w.AddImage(Image{Path: "/bin/a"})
	realtest.Must(t, err)
	id, err := w.AddFunctions([]Function{{Name: "f", Image: im}})
	realtest.Must(t, err)
	for _, end := range []uint64{0, 3000, 1 << 60} {
		th, err := w.Thread(Thread{TID: 7, Process: 7, Name: "t"})
		realtest.Must(t, err)
		realtest.Must(t, th.Append([]Event{{Time: 2000, SP: 100, Word: id << 1}}))
		if end != 0 {
			realtest.Must(t, th.End(end))
		}
	}
	realtest.Must(t, w.ClockPair(9000, 1))
	f := reopen(t, w, path)
	s := Summarize(f, SummaryOptions{})
	if len(s.Functions) != 1 || s.Functions[0].Unfinished != 3 || s.Functions[0].Total != 7000+1000+7000 {
		t.Errorf("%+v", s.Functions)
	}
}

// Who counts what can be read of a reel that took no more opens it behind its Writer's end.
func TestAReelOpensBehindItsWritersEnd(t *testing.T) {
	name := filepath.Join(t.TempDir(), "over.reel")
	w, err := Create(name, Header{Clock: Clock{TicksPerSecond: 1e9, BaseTick: 1000, BaseUnixNS: 1}}, Options{})
	realtest.Must(t, err)
	tw, err := w.Thread(Thread{TID: 1})
	realtest.Must(t, err)
	realtest.Must(t, tw.Append([]Event{Entry(2000, 0x8000, 1), Exit(3000, 0x8000, 1)}))
	realtest.Must(t, w.Close())
	realtest.Must(t, tw.Sched([]SchedEvent{{Time: 1500, Kind: SchedIn}})) // it waits for more, and is told of no end
	f, err := w.Open()
	realtest.Must(t, err)
	defer f.Close()
	if s := Summarize(f, SummaryOptions{}); s.Events != 2 {
		t.Errorf("%d events can be read, want 2", s.Events)
	}
}
