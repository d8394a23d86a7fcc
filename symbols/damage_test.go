package symbols

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
)

// exercise looks up addresses in and around all regions; it must neither panic nor
// allocate, and says how many frames it got.
func exercise(t testing.TB, m *Map) int {
	t.Helper()
	frames := make([]Frame, 0, maxNodes+1)
	total := 0
	look := func(addr uint64) {
		var reason Reason
		frames, reason = m.Lookup(addr, frames[:0])
		if reason != Found && len(frames) > 0 {
			t.Fatalf("%#x: %d frames and %v", addr, len(frames), reason)
		}
		if len(frames) > maxNodes {
			t.Fatalf("%#x: %d frames", addr, len(frames))
		}
		for k := range frames {
			total += len(frames[k].Linkage) + len(frames[k].Dir) + len(frames[k].Base)
		}
	}
	for k := range min(len(m.regions)/regionSize, 8) {
		r := decodeRegion(m.regions, k)
		for off := uint64(0); off < 0x1000; off += 3 {
			look(r.base + off)
		}
		look(r.base + r.size)
		look(r.base - 1)
	}
	look(0)
	look(^uint64(0))
	return total
}

func sample(t testing.TB) []byte {
	return randomModel(rand.New(rand.NewPCG(5, 5))).bytes(t, 1)
}

func TestTruncatedMapIsRefused(t *testing.T) {
	data := sample(t)
	for n := range data {
		if _, err := Parse("cut", data[:n]); !errors.Is(err, ErrNotMap) {
			t.Fatalf("%d of %d bytes: %v", n, len(data), err)
		}
	}
}

func TestDamagedHeaderIsRefused(t *testing.T) {
	data := sample(t)
	for n := range headerSize * 8 {
		data[n/8] ^= 1 << (n % 8)
		if _, err := Parse("flipped", data); !errors.Is(err, ErrNotMap) {
			t.Fatalf("bit %d: %v", n, err)
		}
		data[n/8] ^= 1 << (n % 8)
	}
}

func TestDamagedSectionsDoNoHarm(t *testing.T) {
	data := sample(t)
	for n := headerSize; n < len(data); n++ {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			old := data[n]
			data[n] = v
			m, err := Parse("damaged", data)
			if err != nil {
				t.Fatal(err)
			}
			if n%7 == 0 {
				exercise(t, m)
			} else {
				m.Lookup(0x1000+uint64(n)%0x1000, nil)
			}
			data[n] = old
		}
	}
}

func TestHeaderWithImpossibleWidthsIsRefused(t *testing.T) {
	for at := range 4 {
		data := sample(t)
		data[28+at] = 60
		binary.LittleEndian.PutUint32(data[checksumOffset:], headerChecksum(data))
		if _, err := Parse("wide", data); !errors.Is(err, ErrNotMap) {
			t.Errorf("width %d: %v", at, err)
		}
	}
}

func TestOtherVersionIsRefused(t *testing.T) {
	data := sample(t)
	binary.LittleEndian.PutUint32(data[8:], version+1)
	binary.LittleEndian.PutUint32(data[checksumOffset:], headerChecksum(data))
	if _, err := Parse("new", data); !errors.Is(err, ErrNotMap) {
		t.Errorf("got %v", err)
	}
}

// FuzzMap repairs the checksum, so that the fuzzer gets past it.
func FuzzMap(f *testing.F) {
	f.Add(sample(f))
	f.Add(oneFile().bytes(f, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= headerSize {
			binary.LittleEndian.PutUint64(data[40:], uint64(len(data)))
			binary.LittleEndian.PutUint32(data[checksumOffset:], headerChecksum(data))
		}
		m, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		exercise(t, m)
		n := 0
		m.Functions(func(_, _ uint64, _ string) bool { n++; return n < 10000 })
	})
}
