package reel

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// smallReel is a reel of two threads with three chunks each, and their events.
func smallReel(tb testing.TB, closed bool) (data []byte, events [][]Event) {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "small.reel")
	w, err := Create(name, testHeader, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	check := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	_, err = w.AddImage(Image{Path: "/bin/prog", ID: "ab"})
	check(err)
	_, err = w.AddFunctions([]Function{{Name: "main", Image: 1}, {Name: "work", Image: 1}})
	check(err)
	var threads []*ThreadWriter
	for i := range 2 {
		events = append(events, newProgram(uint64(i), 10).run(30))
		tw, err := w.Thread(Thread{TID: 10 + i, Name: "t"})
		check(err)
		threads = append(threads, tw)
	}
	for part := range 3 {
		for i, tw := range threads {
			check(tw.Append(events[i][part*10 : part*10+10]))
			check(tw.Flush())
		}
	}
	check(threads[1].Dropped(1, 1, 5))
	check(w.ClockPair(9000, 1_700_000_000_000_008_000))
	check(w.Dump(testDump))
	check(w.Flush())
	if !closed {
		data, err = os.ReadFile(name)
		check(err)
	}
	check(w.Close())
	if closed {
		data, err = os.ReadFile(name)
		check(err)
	}
	return data, events
}

// readable returns which chunks of each thread are read as they were written; a
// batch that is not one of them fails the test.
func readable(t *testing.T, f *File, events [][]Event) (parts []int) {
	t.Helper()
	for i := range events {
		f.ReadThread(uint32(i+1), func(batch []Event, _ bool) bool {
			for part := range 3 {
				if slices.Equal(batch, events[i][part*10:part*10+10]) {
					parts = append(parts, i*3+part)
					return true
				}
			}
			t.Errorf("thread %d: a batch of %d events that was never written", i+1, len(batch))
			return true
		})
	}
	return parts
}

func TestTruncatedAnywhereGivesWhatPrecedes(t *testing.T) {
	for _, closed := range []bool{true, false} {
		data, events := smallReel(t, closed)
		whole, err := Parse("whole", data)
		realtest.Must(t, err)
		for size := range data {
			f, err := Parse("cut", data[:size])
			if err != nil {
				if !errors.Is(err, ErrFormat) {
					t.Fatalf("cut to %d: %v", size, err)
				}
				if first := frameSize + len(appendHeader(nil, &testHeader)); size >= first {
					t.Fatalf("cut to %d: %v, though the header of %d bytes is there", size, err, first)
				}
				continue
			}
			want, atEnd := 0, true
			for i := range events {
				for _, c := range whole.Chunks(uint32(i + 1)) {
					if c.Offset+frameSize+int64(c.Bytes) <= int64(size) {
						want++
					}
				}
			}
			for pos := 0; pos < size; {
				fr, _ := parseFrame(data[pos:])
				pos += frameSize + int(fr.length)
				atEnd = pos == size
			}
			if got := readable(t, f, events); len(got) != want {
				t.Fatalf("cut to %d: %d chunks are readable, want %d", size, len(got), want)
			}
			if damaged := len(f.Damage()) > 0; damaged == atEnd {
				t.Fatalf("cut to %d: damage %v, end of a chunk %v", size, f.Damage(), atEnd)
			}
		}
	}
}

func TestFlippedByteLosesOneChunkAtMost(t *testing.T) {
	for _, closed := range []bool{true, false} {
		data, events := smallReel(t, closed)
		for i := range data {
			for _, bits := range []byte{0x01, 0xff} {
				bad := bytes.Clone(data)
				bad[i] ^= bits
				f, err := Parse("flipped", bad)
				if err != nil {
					t.Fatalf("byte %d: %v", i, err)
				}
				got := readable(t, f, events)
				f.Verify()
				if len(got) < 5 {
					t.Fatalf("byte %d: only chunks %v are readable; damage %v", i, got, f.Damage())
				}
				if len(f.Damage()) == 0 {
					t.Fatalf("byte %d (closed %v): no damage was reported", i, closed)
				}
				if len(got) == 5 && f.Damage()[0].Events != 10 && closed {
					t.Fatalf("byte %d: 10 events are lost, damage says %+v", i, f.Damage())
				}
				if i%16 == 0 {
					Summarize(f, SummaryOptions{Workers: 1})
				}
			}
		}
	}
}

func TestChunksAfterAHoleAreRead(t *testing.T) {
	data, events := smallReel(t, false)
	f, err := Parse("whole", data)
	realtest.Must(t, err)
	hole := f.Chunks(1)[1]
	tests := []struct {
		name string
		bad  func() []byte
	}{
		{"zeros", func() []byte {
			b := bytes.Clone(data)
			clear(b[hole.Offset : hole.Offset+frameSize+int64(hole.Bytes)])
			return b
		}},
		{"cut out", func() []byte {
			return slices.Delete(bytes.Clone(data), int(hole.Offset), int(hole.Offset)+frameSize+hole.Bytes)
		}},
		{"junk put in", func() []byte {
			return slices.Insert(bytes.Clone(data), int(hole.Offset), []byte("junk \x8areL junk, longer than a frame is, to look like one")...)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := Parse("hole", test.bad())
			realtest.Must(t, err)
			want := []int{0, 2, 3, 4, 5}
			if test.name == "junk put in" {
				want = []int{0, 1, 2, 3, 4, 5}
			}
			if got := readable(t, f, events); !slices.Equal(got, want) {
				t.Errorf("chunks %v are readable, want %v", got, want)
			}
			if len(f.Damage()) != 1 {
				t.Errorf("damage %v", f.Damage())
			}
			if _, lost := eventsOf(f, 1); len(want) == 5 && !slices.Equal(lost, []int{10}) {
				t.Errorf("events lost at %v, want at 10", lost)
			}
		})
	}
}

func TestLostFunctionsKeepTheirNumbers(t *testing.T) {
	w, name := create(t, testHeader)
	for _, n := range []string{"a", "b", "c"} {
		_, err := w.AddFunctions([]Function{{Name: n}})
		realtest.Must(t, err)
	}
	tw := addThread(t, w, Thread{TID: 1})
	realtest.Must(t, tw.Append([]Event{Entry(10, 100, 2), Exit(20, 100, 2), Entry(30, 100, 3), Exit(40, 100, 3)}))
	realtest.Must(t, w.Close())
	data, err := os.ReadFile(name)
	realtest.Must(t, err)
	entries, _ := indexed(data)
	data[entries[2].offset+frameSize+3] ^= 1 // in the functions chunk of b
	f, err := Parse(name, data)
	realtest.Must(t, err)
	if fn, ok := f.Function(3); !ok || fn.Name != "c" {
		t.Errorf("function 3 is %+v", fn)
	}
	if _, ok := f.Function(2); ok {
		t.Error("function 2 is known though its chunk is damaged")
	}
	var names []string
	for _, fs := range Summarize(f, SummaryOptions{}).Functions {
		names = append(names, fs.Name)
	}
	if !slices.Equal(names, []string{"c", "function #2"}) && !slices.Equal(names, []string{"function #2", "c"}) {
		t.Errorf("report names %q", names)
	}
}

func TestNotAReel(t *testing.T) {
	for _, data := range [][]byte{nil, []byte("x"), []byte(frameMagic), bytes.Repeat([]byte(frameMagic), 100), make([]byte, 4096)} {
		if _, err := Parse("other", data); !errors.Is(err, ErrFormat) {
			t.Errorf("%.20q…: %v", data, err)
		}
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	payload := appendHeader(nil, &testHeader)
	payload[0] = Version + 1
	b := append(make([]byte, frameSize), payload...)
	(&frame{kind: KindHeader}).put(b, payload)
	if _, err := Parse("newer", b); !errors.Is(err, ErrFormat) {
		t.Errorf("version %d: %v", Version+1, err)
	}
}

// FuzzOpen reads hostile bytes, with checksums put right so that the fuzzer gets
// past them.
func FuzzOpen(f *testing.F) {
	for _, closed := range []bool{true, false} {
		data, _ := smallReel(f, closed)
		f.Add(data, true)
		f.Add(data, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, mend bool) {
		if mend {
			data = mendChecksums(data)
		}
		file, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		file.Verify()
		file.Dump()
		s := Summarize(file, SummaryOptions{Workers: 1})
		if s.Events > uint64(len(data)) {
			t.Errorf("%d events out of %d bytes", s.Events, len(data))
		}
		for _, th := range file.Threads() {
			file.readAhead(th.Key, func([]Event, bool) bool { return true })
		}
	})
}

// mendChecksums makes the checksums of all frames right that lead from one to
// the next.
func mendChecksums(data []byte) []byte {
	data = bytes.Clone(data)
	for pos := 0; pos+frameSize <= len(data); {
		b := data[pos:]
		length := uint64(value(b[8:12]).number())
		if length > uint64(len(b)-frameSize) {
			break
		}
		copy(b, frameMagic)
		fr := frame{
			kind: ChunkKind(b[4]), mode: ClockMode(b[5]), thread: uint32(value(b[12:16]).number()), count: uint32(value(b[16:20]).number()),
			seq: uint32(value(b[20:24]).number()), first: value(b[24:32]).number(), last: value(b[32:40]).number(),
		}
		fr.put(b, b[frameSize:frameSize+length])
		pos += frameSize + int(length)
	}
	return data
}
