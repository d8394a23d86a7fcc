package reel

import "fmt"

// ImageID names an image within a reel, from 1; 0 is no image.
type ImageID uint32

// Image is an ELF or Mach-O file as the process had it mapped.
type Image struct {
	// Path is the file's name as the process saw it. Of one that is longer than Linux has them (4,095 bytes, limits.h) a
	// reader gives the end: all functions of the image are named by it.
	Path string
	// ID is the build ID or UUID in hexadecimal, empty when there is none.
	ID string
	// Arch is the architecture as Go spells it.
	Arch string
	// Slide is load address minus link address.
	Slide uint64
	// Base and End are the addresses it was loaded at, End exclusive.
	Base, End uint64
}

// Tier is how a probe sees the exit of its function.
type Tier uint8

// The tiers; TierNone is a function that was not probed.
const (
	TierNone Tier = iota
	TierExitSite
	TierReturnTrampoline
	TierBreakpoint
)

// String returns the tier as reports spell it; TierNone is empty.
func (t Tier) String() string {
	switch t {
	case TierNone:
		return ""
	case TierExitSite:
		return "exit-site"
	case TierReturnTrampoline:
		return "return-trampoline"
	case TierBreakpoint:
		return "breakpoint"
	}
	return fmt.Sprintf("tier %d", uint8(t))
}

// Function is one entry of the reel's function table.
type Function struct {
	// Name is the name as the symbol table has it, not demangled. It may hold
	// any bytes.
	Name  string
	Image ImageID
	// Addr is the link address of the entry; Size is in bytes.
	Addr uint64
	Size uint64
	Tier Tier
}

// Thread identifies a thread of the recording.
type Thread struct {
	// Key is the thread's number in the reel, from 1. The writer gives it.
	Key uint32
	// TID is the kernel's thread ID, Process the ID of its process.
	TID     int
	Process int
	// StartTime tells threads apart that had the same TID one after the other:
	// clock ticks since boot, as in /proc/PID/task/TID/stat; 0 if not known.
	StartTime uint64
	// Name is the thread's name, the last one if it changed.
	Name string
	// EndTick is about when the thread ended, or replaced its program, in ticks; 0 if it was there to the recording's end.
	EndTick uint64
}

// ClockPair is one instant on both clocks.
type ClockPair struct {
	Tick   uint64 // time-stamp counter
	UnixNS int64  // nanoseconds since 1970-01-01 UTC
}

// Drop says that a thread's ring was full and events were not recorded.
type Drop struct {
	Thread uint32 // key of the thread
	// Entries and Exits are how many events were not recorded. An exit is
	// dropped only together with its entry.
	Entries, Exits uint64
	// Tick is about when, in ticks; 0 without a clock.
	Tick uint64
	// After is how many events of the thread were appended before.
	After uint64
}

// metaBytes is where a chunk of images or functions ends and the next one
// starts.
const metaBytes = 1 << 20

func appendImage(b []byte, m *Image) []byte {
	b = appendString(b, m.Path)
	b = appendString(b, m.ID)
	b = appendString(b, m.Arch)
	b = appendUvarint(b, m.Slide)
	b = appendUvarint(b, m.Base)
	return appendUvarint(b, m.End)
}

// maxPath is PATH_MAX of Linux without the final zero.
const maxPath = 4095

func parseImages(payload []byte, count uint32) (first ImageID, images []Image, err error) {
	d := fields{b: payload}
	first = ImageID(d.uint32())
	for i := uint32(0); i < count && d.err == nil; i++ {
		m := Image{Path: d.string(), ID: d.string(), Arch: d.string()}
		m.Path = m.Path[max(0, len(m.Path)-maxPath):]
		m.Slide, m.Base, m.End = d.uvarint(), d.uvarint(), d.uvarint()
		if d.err == nil {
			images = append(images, m)
		}
	}
	return first, images, d.err
}

func appendFunction(b []byte, f *Function) []byte {
	b = appendString(b, f.Name)
	b = appendUvarint(b, uint64(f.Image))
	b = appendUvarint(b, f.Addr)
	b = appendUvarint(b, f.Size)
	return append(b, byte(f.Tier))
}

// minFunction is the fewest bytes that a function takes in a payload.
const minFunction = 5

func parseFunctions(payload []byte, count uint32) (first uint32, functions []Function, err error) {
	d := fields{b: payload}
	first = d.uint32()
	functions = make([]Function, 0, min(int(count), len(payload)/minFunction))
	for i := uint32(0); i < count && d.err == nil; i++ {
		f := Function{Name: d.string(), Image: ImageID(d.uint32()), Addr: d.uvarint(), Size: d.uvarint()}
		f.Tier = Tier(d.uvarint())
		if d.err == nil {
			functions = append(functions, f)
		}
	}
	return first, functions, d.err
}

func appendThread(b []byte, t *Thread) []byte {
	b = appendUvarint(b, uint64(t.TID))
	b = appendUvarint(b, uint64(t.Process))
	b = appendUvarint(b, t.StartTime)
	b = appendString(b, t.Name)
	if t.EndTick != 0 {
		b = appendUvarint(b, t.EndTick)
	}
	return b
}

func parseThread(payload []byte, key uint32) (Thread, error) {
	d := fields{b: payload}
	t := Thread{Key: key, TID: int(d.uint32()), Process: int(d.uint32()), StartTime: d.uvarint()}
	t.Name = d.string()
	if d.more() {
		t.EndTick = d.uvarint()
	}
	return t, d.err
}

func appendDrop(b []byte, d *Drop) []byte {
	b = appendUvarint(b, d.Entries)
	b = appendUvarint(b, d.Exits)
	b = appendUvarint(b, d.Tick)
	return appendUvarint(b, d.After)
}

func parseDrops(payload []byte, thread, count uint32) (drops []Drop, err error) {
	d := fields{b: payload}
	for i := uint32(0); i < count && d.err == nil; i++ {
		x := Drop{Thread: thread, Entries: d.uvarint(), Exits: d.uvarint(), Tick: d.uvarint(), After: d.uvarint()}
		if d.err == nil {
			drops = append(drops, x)
		}
	}
	return drops, d.err
}

func appendClockPair(b []byte, c ClockPair) []byte {
	b = appendUvarint(b, c.Tick)
	return appendUvarint(b, uint64(c.UnixNS))
}

func parseClockPair(payload []byte) (ClockPair, error) {
	d := fields{b: payload}
	c := ClockPair{Tick: d.uvarint(), UnixNS: int64(d.uvarint())}
	return c, d.err
}
