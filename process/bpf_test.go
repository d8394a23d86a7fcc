package process

import (
	"encoding/binary"
	"errors"
	"testing"
)

const (
	killProcess = 0x80000000
	killThread  = 0
	retErrno    = 0x00050001
	retAllow    = seccompRetAllow
)

func ret(k uint32) FilterInstruction  { return FilterInstruction{Code: 0x06, K: k} }
func load(k uint32) FilterInstruction { return FilterInstruction{Code: 0x20, K: k} }

func TestFiltersCompute(t *testing.T) {
	data := SyscallData{Number: 319, Arch: AuditArchX8664, InstructionPointer: 0x1122334455667788, Args: [6]uint64{0xaaaabbbbccccdddd, 5: 7}}
	for _, c := range []struct {
		name string
		f    Filter
		want uint32
	}{
		{"number", Filter{load(0), {Code: 0x16}}, 319},
		{"architecture", Filter{load(4), {Code: 0x16}}, AuditArchX8664},
		{"instruction pointer", Filter{load(12), {Code: 0x16}}, 0x11223344},
		{"argument, low half", Filter{load(16), {Code: 0x16}}, 0xccccdddd},
		{"argument, high half", Filter{load(20), {Code: 0x16}}, 0xaaaabbbb},
		{"last argument", Filter{load(56), {Code: 0x16}}, 7},
		{"length", Filter{{Code: 0x80}, {Code: 0x16}}, 64},
		{"equal, taken", Filter{load(0), {Code: 0x15, JT: 1, K: 319}, ret(1), ret(2)}, 2},
		{"equal, not taken", Filter{load(0), {Code: 0x15, JT: 1, K: 318}, ret(1), ret(2)}, 1},
		{"greater", Filter{load(0), {Code: 0x25, JT: 1, K: 319}, ret(1), ret(2)}, 1},
		{"greater or equal", Filter{load(0), {Code: 0x35, JT: 1, K: 319}, ret(1), ret(2)}, 2},
		{"bits", Filter{load(0), {Code: 0x45, JF: 1, K: 0x100}, ret(1), ret(2)}, 1},
		{"always", Filter{{Code: 0x05, K: 1}, ret(1), ret(2)}, 2},
		{"x register", Filter{{Code: 0x01, K: 319}, load(0), {Code: 0x1d, JT: 1}, ret(1), ret(2)}, 2},
		{"memory", Filter{load(0), {Code: 0x02, K: 3}, {Code: 0x00, K: 9}, {Code: 0x60, K: 3}, {Code: 0x16}}, 319},
		{"memory and x", Filter{{Code: 0x01, K: 5}, {Code: 0x03, K: 15}, {Code: 0x61, K: 15}, {Code: 0x87}, {Code: 0x16}}, 5},
		{"a to x and back", Filter{load(0), {Code: 0x07}, {Code: 0x00}, {Code: 0x87}, {Code: 0x16}}, 319},
		{"arithmetic", Filter{{Code: 0, K: 10}, {Code: 0x04, K: 5}, {Code: 0x14, K: 1}, {Code: 0x24, K: 6}, {Code: 0x34, K: 7}, {Code: 0x16}}, 12},
		{"logic", Filter{{Code: 0, K: 0xf0}, {Code: 0x44, K: 1}, {Code: 0x54, K: 0xf1}, {Code: 0xa4, K: 0xff}, {Code: 0x64, K: 4}, {Code: 0x74, K: 5}, {Code: 0x16}}, 7},
		{"negation", Filter{{Code: 0, K: 1}, {Code: 0x84}, {Code: 0x16}}, 0xffffffff},
	} {
		if got, err := c.f.Run(data); err != nil || got != c.want {
			t.Errorf("%s: %#x, %v, want %#x", c.name, got, err, c.want)
		}
	}
}

func TestBadFiltersAreRefused(t *testing.T) {
	for name, f := range map[string]Filter{
		"empty": {}, "too long": make(Filter, bpfMaxLen+1), "no return": {load(0)},
		"jump over the end": {{Code: 0x05, K: 0xffffffff}, ret(0)}, "branch over the end": {{Code: 0x15, JT: 9, JF: 9}, ret(0)},
		"unaligned load": {load(2), ret(0)}, "load beyond the data": {load(64), ret(0)}, "byte load": {{Code: 0x30}, ret(0)},
		"memory beyond": {{Code: 0x60, K: 16}, ret(0)}, "store beyond": {{Code: 0x02, K: 16}, ret(0)},
		"division by zero": {{Code: 0x34}, ret(0)}, "unknown arithmetic": {{Code: 0xf4}, ret(0)}, "unknown jump": {{Code: 0x55}, ret(0)},
		"load to x": {{Code: 0x21}, ret(0)},
	} {
		if _, err := f.Run(SyscallData{}); !errors.Is(err, ErrFilter) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheMostRestrictiveFilterWins(t *testing.T) {
	for _, c := range []struct {
		answers []uint32
		want    uint32
		passes  bool
	}{
		{nil, retAllow, true},
		{[]uint32{retAllow, seccompRetLog}, seccompRetLog, true},
		{[]uint32{seccompRetLog, retErrno, retAllow}, retErrno, false},
		{[]uint32{retErrno, killThread}, killThread, false},
		{[]uint32{killThread, killProcess, retErrno}, killProcess, false},
		{[]uint32{retErrno, retErrno + 1}, retErrno, false},
		{[]uint32{0x7fc00000, retAllow}, 0x7fc00000, false},
	} {
		var filters []Filter
		for _, a := range c.answers {
			filters = append(filters, Filter{ret(a)})
		}
		got, err := Verdict(filters, SyscallData{})
		if err != nil || got != c.want || Passes(got) != c.passes {
			t.Errorf("%#x: %#x, %v", c.answers, got, err)
		}
	}
	if _, err := Verdict([]Filter{{ret(retAllow)}, {}}, SyscallData{}); !errors.Is(err, ErrFilter) {
		t.Error(err)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add([]byte{0x20, 0, 0, 0, 0, 0, 0, 0, 0x15, 0, 1, 0, 63, 1, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0xff, 0x7f}, uint32(319), uint64(1))
	f.Fuzz(func(t *testing.T, raw []byte, number uint32, arg uint64) {
		filter := make(Filter, len(raw)/8)
		for i := range filter {
			b := raw[8*i:]
			filter[i] = FilterInstruction{binary.LittleEndian.Uint16(b), b[2], b[3], binary.LittleEndian.Uint32(b[4:])}
		}
		data := SyscallData{Number: number, Arch: AuditArchX8664, Args: [6]uint64{arg}}
		a, err1 := filter.Run(data)
		b, err2 := filter.Run(data)
		if a != b || (err1 == nil) != (err2 == nil) {
			t.Errorf("%#x, %v and then %#x, %v", a, err1, b, err2)
		}
	})
}
