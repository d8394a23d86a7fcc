package process

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"
)

func TestStoresAreRecognized(t *testing.T) {
	for _, c := range []struct {
		code string
		want store // without its code
		ok   bool
	}{
		{"488903 c3", store{base: regRBX}, true},
		{"48894308 5b c3", store{base: regRBX, disp: 8, pop: 8}, true},
		{"488945f8 4883c418 5b5d c3", store{base: regRBP, disp: -8, pop: 40}, true},
		{"49890424 415c c3", store{base: regR12, pop: 8}, true},
		{"4989442410 31c0 415c415d c3", store{base: regR12, disp: 16, pop: 16}, true},
		{"49894500 c3", store{base: regR13}, true},
		{"498906 c3", store{base: regR14}, true},
		{"498947e8 415e415f5e5f c3", store{base: regR15, disp: -24, pop: 32}, true},
		{"488907 c3", store{base: regRDI}, true},
		{"488b03 c3", store{}, false},          // a load
		{"48890b c3", store{}, false},          // rcx
		{"4c8903 c3", store{}, false},          // r8
		{"488905c3c3c3c3", store{}, false},     // relative to rip
		{"49890464 c3", store{}, false},        // an index
		{"488906 c3", store{}, false},          // to rsi
		{"488983c3000000", store{}, false},     // a long displacement
		{"488903 4883c404 c3", store{}, false}, // half a word
		{"488903 90 c3", store{}, false},
		{"488903", store{}, false},
		{"488903 5b", store{}, false},
	} {
		code, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(c.code), []byte(" "), nil)))
		if err != nil {
			t.Fatal(err)
		}
		got, ok := decodeStore(code)
		if ok != c.ok {
			t.Errorf("%s: %v", c.code, ok)
			continue
		}
		if ok && !bytes.Equal(got.code, code) {
			t.Errorf("%s: taken for %x", c.code, got.code)
		}
		if got.base != c.want.base || got.disp != c.want.disp || got.pop != c.want.pop {
			t.Errorf("%s: %+v, want %+v", c.code, got, c.want)
		}
	}
}

func anyBase(baseRegister) bool { return true }

func FuzzScan(f *testing.F) {
	f.Add([]byte{0x90, 0x48, 0x89, 0x43, 8, 0x5b, 0xc3})
	f.Add([]byte{0x49, 0x89})
	f.Fuzz(func(t *testing.T, code []byte) {
		at, s := scanStore(code, anyBase)
		if at >= 0 && (!bytes.HasPrefix(code[at:], s.code) || s.code[len(s.code)-1] != 0xc3 || s.pop%8 != 0 || s.pop < 0) {
			t.Errorf("at %d: %+v", at, s)
		}
		if at, n := scanRestorer(code); at >= 0 && at+n > len(code) {
			t.Errorf("restorer at %d", at)
		}
	})
}

func FuzzFrameXState(f *testing.F) {
	f.Add(make([]byte, 832))
	f.Fuzz(func(t *testing.T, state []byte) {
		out, err := frameXState(state)
		if err != nil {
			if !errors.Is(err, errXState) {
				t.Error(err)
			}
			return
		}
		if size := binary.LittleEndian.Uint32(out[swReserved+16:]); int(size)+4 != len(out) || int(size) > len(state) {
			t.Errorf("size %d of %d", size, len(state))
		}
	})
}

func TestChainLiesBelowTheRedZoneInOrder(t *testing.T) {
	vector := make([]byte, 836)
	for _, g := range []*gadgets{
		{syscall: 1, restorer: 2, store: 3, tail: store{base: regRBX, disp: 8, pop: 16}},
		{syscall: 1, popRAX: 2, popRDI: 4, rdiStore: 3, rdiTail: store{base: regRDI}},
	} {
		regs := Regs{Rip: 0x1234, Rsp: 0x7fff_0000_1238, Cs: userCS, Ss: 0x2b}
		plan := framePlan{chainPlan{
			stack: 0x7fff_0000_1238, sleep: arch.sleepCalls()[0], cookie: 99, gadgets: g,
			calls: []Call{{Number: 5, Data: []byte("name"), DataArg: 1}, {Number: 6}},
			rest:  regs, mask: 0x55,
		}, frameOf(&regs, 0x55), vector}
		c, err := plan.build()
		if err != nil {
			t.Fatal(err)
		}
		if c.end > plan.stack-arch.redZone() || c.base+uint64(len(c.bytes)) != c.end || c.start.SP() != c.base || c.start.PC() != g.syscall {
			t.Errorf("chain %#x to %#x, start %+v", c.base, c.end, c.start)
		}
		if got := c.bytes[c.data[0]-c.base:][:4]; string(got) != "name" || c.start.Rsi != c.data[0] || c.start.Rax != 5 {
			t.Errorf("data %q at %#x, start %+v", got, c.data[0], c.start)
		}
		words := map[uint64]int{}
		for i := 0; i+8 <= len(c.bytes); i += 8 {
			words[binary.LittleEndian.Uint64(c.bytes[i:])]++
		}
		if words[cellEmpty] != 2 || words[0x1234] != 1 || words[sleepNanoseconds] != 1 {
			t.Errorf("words %v", words)
		}
		if c.cells%8 != 0 || c.cells < c.data[0]+4 || c.cells+16 > c.end {
			t.Errorf("cells at %#x", c.cells)
		}
	}
	if _, err := (&framePlan{chainPlan: chainPlan{stack: 4096, gadgets: &gadgets{}}}).build(); !errors.Is(err, ErrNoSafeThread) {
		t.Errorf("stack at 4096: %v", err)
	}
}
