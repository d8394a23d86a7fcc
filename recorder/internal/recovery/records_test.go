package recovery

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// recordsOf are records of all shapes.
func recordsOf() []Record {
	return []Record{
		{Arenas: []Arena{{Span{0x7000_0000, 0x5000}, 1, 7}, {Span{0x1_0000_0000, 0x2000}, 0, 0}}},
		{Patches: []stub.Patch{
			patchOf(0x401000, []byte{1, 2, 3, 4, 5}, []byte{0xE9, 1, 2, 3, 4}, stub.Patch{Level: 1}),
			patchOf(0x401009, []byte{1, 2}, []byte{0xEB, 3}, stub.Patch{Level: 2}),
			patchOf(0x401020, []byte{0xCC, 0xCC, 0xCC, 0xCC, 0xCC}, []byte{0xE9, 4, 3, 2, 1}, stub.Patch{Island: true}),
			patchOf(0x401030, []byte{9, 9, 9, 9, 9}, []byte{0xE9, 9, 3, 2, 1}, stub.Patch{Hosted: true, Level: 1}),
		}},
		{},
		{Semaphores: []Semaphore{{Addr: 0x602000, Dev: 1, Inode: 9, Site: 0x401000}, {Addr: 0x602002, Dev: 1, Inode: 9, Site: 0x401000}}},
		{Arenas: []Arena{{Span{0x9000_0000, 0x3000}, 1, 8}}},
		{
			Slots:      []Slot{{Addr: 0x603000, Was: 0x7f00_0000_1234, Target: 0x7f00_0000_5678, Stub: 0x9000_0040, Dev: 1, Inode: 9}, {Addr: 0x603008}},
			Semaphores: []Semaphore{{Addr: 0x602004, Dev: 1, Inode: 9, Site: 0x401000}},
		},
	}
}

// patchOf is a patch of the kind and level that like has.
func patchOf(addr uint64, old, new []byte, like stub.Patch) stub.Patch {
	p := stub.NewPatch(addr, old, new)
	p.Island, p.Hosted, p.Level = like.Island, like.Hosted, like.Level
	return p
}

func readAll(space []byte) (*Record, error) {
	return ReadRecords(uint64(len(space)), 0, func(buf []byte, off uint64) error {
		copy(buf, space[off:])
		return nil
	})
}

// What is read is what was written so far, after each record.
func TestTheJournalIsReadAsItWasWritten(t *testing.T) {
	j := Journal{Space: make([]byte, 4096)}
	var want Record
	for i, r := range recordsOf() {
		if err := j.Add(&r); err != nil {
			t.Fatal(err)
		}
		want.Arenas, want.Patches = append(want.Arenas, r.Arenas...), append(want.Patches, r.Patches...)
		for _, x := range r.Semaphores {
			x.state = nil // where the recorder has it
			want.Semaphores = append(want.Semaphores, x)
		}
		want.Slots = append(want.Slots, r.Slots...)
		got, err := readAll(j.Space)
		if err != nil {
			t.Fatalf("after record %d: %v", i, err)
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("after record %d: %+v, want %+v", i, *got, want)
		}
	}
}

// A recorder that dies while it adds a record has written all of it but the
// magic, or any part of that: the records before are whole.
func TestARecordThatIsBeingWrittenIsNotThereYet(t *testing.T) {
	records := recordsOf()
	j := Journal{Space: make([]byte, 4096)}
	for i := range records {
		before := bytes.Clone(j.Space)
		want, err := readAll(before)
		if err != nil {
			t.Fatal(err)
		}
		from := j.used
		if err := j.Add(&records[i]); err != nil {
			t.Fatal(err)
		}
		for end := from + 8; end <= j.used; end++ { // what is behind the magic, which comes last
			torn := bytes.Clone(before)
			copy(torn[from+8:end], j.Space[from+8:end])
			got, err := readAll(torn)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("record %d, %d bytes of it: %+v, %v", i, end-from, got, err)
			}
		}
	}
}

func TestAFullJournalSaysSo(t *testing.T) {
	records := recordsOf()
	j := Journal{Space: make([]byte, RecordSize(0, 4, 0, 0)+8)}
	if err := j.Add(&records[1]); err != nil {
		t.Fatal(err)
	}
	if err := j.Add(&records[0]); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("%v", err)
	}
	if got, err := readAll(j.Space); err != nil || len(got.Patches) != 4 || len(got.Arenas) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// The target can write anything there.
func FuzzReadRecovery(f *testing.F) {
	j := Journal{Space: make([]byte, 1024)}
	for _, r := range recordsOf() {
		if err := j.Add(&r); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(bytes.Clone(j.Space))
	f.Add(bytes.Clone(j.Space[:100]))
	f.Fuzz(func(t *testing.T, space []byte) {
		r, err := readAll(space)
		if err == nil && (len(r.Arenas)*recoveryArena > len(space) || len(r.Patches)*recoveryPatch > len(space) || len(r.Slots)*recoverySlot > len(space)) {
			t.Errorf("%d bytes hold %d arenas and %d patches", len(space), len(r.Arenas), len(r.Patches))
		}
		for _, p := range recoveryPatches(r) {
			if len(p.New()) == 0 || len(p.New()) > stub.MaxPatch || len(p.New()) != len(p.Old()) {
				t.Errorf("a patch of %d and %d bytes", len(p.Old()), len(p.New()))
			}
		}
	})
}

func recoveryPatches(r *Record) []stub.Patch {
	if r == nil {
		return nil
	}
	return r.Patches
}
