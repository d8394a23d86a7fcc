package process

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestStoresThatAChainCanUse(t *testing.T) {
	const (
		str19    = 0xf900_0660 // str x0, [x19, #8]
		ldp19    = 0xa941_53f3 // ldp x19, x20, [sp, #16]
		ldp29    = 0xa8c2_7bfd // ldp x29, x30, [sp], #32
		ldr30    = 0xf841_07fe // ldr x30, [sp], #16
		zero     = 0x5280_0000 // mov w0, #0
		autiasp  = 0xd503_23bf
		strX9    = 0xf900_0120 // str x0, [x9]
		strW0    = 0xb900_0260 // str w0, [x19]
		bl       = 0x9400_0000
		addSP    = 0x9100_83ff // add sp, sp, #32
		ldp29low = 0xa97f_7bfd // ldp x29, x30, [sp, #-16]
	)
	for _, c := range []struct {
		name   string
		code   []uint32
		ok     bool
		taken  uint64
		linkAt uint64
	}{
		{"a function's end", []uint32{str19, ldp19, ldp29, insnRET}, true, 32, 8},
		{"with a result", []uint32{str19, zero, ldp29, insnRET}, true, 32, 8},
		{"ours", []uint32{0xf900_0260, ldr30, insnRET}, true, 16, 0},
		{"a leaf's end would go on for ever", []uint32{str19, insnRET}, false, 0, 0},
		{"a signed return address", []uint32{str19, ldp29, autiasp, insnRET}, false, 0, 0},
		{"a register that a call changes", []uint32{strX9, ldp29, insnRET}, false, 0, 0},
		{"half of the result", []uint32{strW0, ldp29, insnRET}, false, 0, 0},
		{"a call", []uint32{str19, bl, ldp29, insnRET}, false, 0, 0},
		{"the link's place is left before", []uint32{str19, addSP, ldp29low, insnRET}, false, 0, 0},
		{"no end", []uint32{str19, ldp29}, false, 0, 0},
	} {
		code := words(c.code...)
		s, ok := decodeStore(code)
		if ok != c.ok || ok && (s.taken != c.taken || s.linkAt != c.linkAt || !bytes.Equal(s.code, code)) {
			t.Errorf("%s: %v, %+v", c.name, ok, s)
		}
		if at, _ := findStore(append(words(insnRET, insnRET), code...)); (at == 8) != c.ok {
			t.Errorf("%s: found at %d", c.name, at)
		}
	}
	if s, ok := decodeStore(laidCode[laidStore:]); !ok || s.base != 19 || findRestorer(laidCode) != 0 || findSVC(laidCode) != laidSyscall {
		t.Error("what is laid isn't found")
	}
}

func TestNumbersInFrontOfACall(t *testing.T) {
	for _, c := range []struct {
		code   []uint32
		number uint64
		ok     bool
	}{
		{[]uint32{0xd280_0c48, insnSVC}, 98, true}, // mov x8, #98
		{[]uint32{0x5280_0ca8, insnSVC}, 101, true},
		{[]uint32{0xd280_0c49, insnSVC}, 0, false}, // x9
		{[]uint32{0xd280_0c48, insnRET}, 0, false},
		{[]uint32{insnSVC}, 0, false},
	} {
		if number, ok := arch.syscallBefore(words(c.code...)); ok != c.ok || number != c.number {
			t.Errorf("%x: %d, %v", c.code, number, ok)
		}
	}
}

func TestFramesHoldWhatPtraceGives(t *testing.T) {
	le := binary.LittleEndian
	fp := make([]byte, sizeUserFP)
	for i := range fp {
		fp[i] = byte(i * 7)
	}
	record, err := frameRecordsOf(append(le.AppendUint64(nil, noteFPSIMD), fp...))
	if err != nil || len(record) != sizeFPSIMD || !bytes.Equal(record[16:], fp[:512]) || !bytes.Equal(record[8:16], fp[512:520]) {
		t.Errorf("FPSIMD: %v, %d bytes", err, len(record))
	}
	const vl = 64
	regs := 32*vl + 16*vl/8 + vl/8
	sve := make([]byte, (sveHeader+regs+15)&^15+16)
	for i := sveHeader; i < len(sve); i++ {
		sve[i] = byte(i * 11)
	}
	le.PutUint16(sve[sveVL:], vl)
	le.PutUint16(sve[sveFlags:], sveLive)
	records, err := frameRecordsOf(append(le.AppendUint64(nil, noteSVE), sve...))
	if err != nil || len(records)%16 != 0 || le.Uint32(records[sizeFPSIMD:]) != magicSVE ||
		!bytes.Equal(records[sizeFPSIMD+sizeSVERecord:][:regs], sve[sveHeader:][:regs]) || !bytes.Equal(records[16+16:][:16], sve[sveHeader+vl:][:16]) {
		t.Errorf("SVE: %v, %d bytes", err, len(records))
	}
	le.PutUint16(sve[sveVL:], maxSVEVL)
	for _, damaged := range [][]byte{nil, sve[:7], append(le.AppendUint64(nil, noteSVE), sve...), append(le.AppendUint64(nil, noteSVE), sve[:40]...), append(le.AppendUint64(nil, noteFPSIMD), fp[:100]...)} {
		if _, err := frameRecordsOf(damaged); err == nil {
			t.Errorf("%d bytes of nothing were taken", len(damaged))
		}
	}
}

func TestChainsFitTheirPlace(t *testing.T) {
	tail, ok := decodeStore(laidCode[laidStore:])
	if !ok {
		t.Fatal("no store")
	}
	vector := append(binary.LittleEndian.AppendUint64(nil, noteFPSIMD), make([]byte, sizeUserFP)...)
	calls := []Call{{Number: 1, Data: []byte("data"), DataArg: 2}, {Number: 2}, {Number: 3, Data: make([]byte, MaxCallData)}}
	const stack = 0x7fff_f000_1230
	c, err := arch.chain(chainPlan{
		stack: stack, calls: calls, vector: vector, sleep: arch.sleepCalls()[0], cookie: newCookie(),
		gadgets: &gadgets{syscall: 0x1000, restorer: 0x2000, store: 0x3000, tail: tail},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.base%16 != 0 || c.end > stack || uint64(len(c.bytes)) != c.end-c.base || c.start.SP() != c.base || c.start.PC() != 0x1000 {
		t.Errorf("from %#x to %#x, %d bytes, SP %#x", c.base, c.end, len(c.bytes), c.start.SP())
	}
	le := binary.LittleEndian
	at := uint64(0) // of the link that begins there
	for range calls {
		if link := le.Uint64(c.bytes[at+tail.linkAt:]); link != 0x2000 {
			t.Errorf("a store returns to %#x", link)
		}
		frame := at + tail.taken
		next := le.Uint64(c.bytes[frame+frameRegs+31*8:]) - c.base
		if want := frame + uint64((&frameState{}).size()); next != want {
			t.Errorf("the next link is at %#x, want %#x", next, want)
		}
		at = next
	}
	if got, ok := arch.cookie(&c.start); !ok || got != c.cookie {
		t.Errorf("the cookie is %#x, %v", got, ok)
	}
}

func TestPlacesOfResults(t *testing.T) {
	const (
		movX3   = 0xaa00_03e3 // mov x3, x0
		adrp4   = 0x9000_0004
		add2    = 0x9101_e262 // add x2, x19, #0x78
		ldr4    = 0xf940_0084 // ldr x4, [x4]
		zero    = 0x5280_0000 // mov w0, #0
		stp19   = 0xa900_ce73 // stp x19, x19, [x19, #8]
		str3    = 0xb900_2263 // str w3, [x19, #32]
		str0    = 0xb900_d260 // str w0, [x19, #208]
		add19   = 0x9100_4273 // add x19, x19, #16
		ldp19   = 0xa940_4e73 // ldp x19, x19, [x19]
		ret     = insnRET
		postInc = 0xf801_0673 // str x19, [x19], #16
	)
	r := &Regs{}
	r.Regs[19] = 0x1000
	for _, c := range []struct {
		name string
		code []uint32
		addr uint64
		ok   bool
	}{
		{"glibc's", []uint32{str0}, 0x1000 + 208, true},
		{"musl's", []uint32{adrp4, movX3, add2, ldr4, zero, stp19, str3}, 0x1000 + 32, true},
		{"the result is lost", []uint32{zero, str0}, 0, false},
		{"another base", []uint32{add19, str0}, 0, false},
		{"a base that is loaded", []uint32{ldp19, str0}, 0, false},
		{"a base that moves", []uint32{postInc, str0}, 0, false},
		{"behind the end", []uint32{ret, str0}, 0, false},
		{"none", nil, 0, false},
	} {
		if addr, size, ok := arch.storeOfResult(words(c.code...), r); ok != c.ok || ok && (addr != c.addr || size != 0) {
			t.Errorf("%s: %#x, %d, %v", c.name, addr, size, ok)
		}
	}
}
