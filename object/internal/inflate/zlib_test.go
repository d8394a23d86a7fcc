package inflate

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"errors"
	"hash/adler32"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
)

// samples are contents that differ in what DEFLATE makes of them.
func samples(t testing.TB) map[string][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300_000)
	for k := range noise {
		noise[k] = byte(random.Uint32())
	}
	few := make([]byte, 200_000)
	for k := range few {
		few[k] = "acgt"[random.IntN(4)]
	}
	var periods []byte
	for period := 1; period <= 300; period++ {
		piece := noise[period*7:][:period]
		periods = append(periods, bytes.Repeat(piece, 1+700/period)...)
	}
	far := bytes.Repeat(noise[:32768], 3)
	var skewed []byte // code lengths up to 15 bits
	for k := range 200 {
		skewed = append(skewed, bytes.Repeat([]byte{byte(k)}, 1+1<<min(k/6, 14))...)
	}
	random.Shuffle(len(skewed), func(a, b int) { skewed[a], skewed[b] = skewed[b], skewed[a] })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"empty": {}, "one byte": {7}, "zeros": make([]byte, 1_000_000), "noise": noise, "four letters": few,
		"periods": periods, "far": far, "skewed": skewed, "program": program[:min(len(program), 1<<20)], "short": []byte("a short text, a short text"),
	}
}

// pack compresses as zlib does at a level.
func pack(t testing.TB, data []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDecodesWhatWasPacked(t *testing.T) {
	for name, data := range samples(t) {
		t.Run(name, func(t *testing.T) {
			for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, flate.BestSpeed, flate.DefaultCompression, flate.BestCompression} {
				packed := pack(t, data, level)
				got, err := Zlib(packed, len(data))
				if err != nil || !bytes.Equal(got, data) {
					t.Fatalf("level %d: %d bytes, %v, want %d", level, len(got), err, len(data))
				}
				if got, err = Zlib(append(packed, "padding"...), len(data)); err != nil || !bytes.Equal(got, data) {
					t.Errorf("level %d: with bytes behind the stream: %v", level, err)
				}
			}
		})
	}
}

func TestWrongSizesAreRefused(t *testing.T) {
	for name, data := range samples(t) {
		packed := pack(t, data, flate.DefaultCompression)
		for _, more := range []int{1, 2, 300, 100_000} {
			if _, err := Zlib(packed, len(data)+more); !errors.Is(err, ErrTooShort) {
				t.Errorf("%s, %d bytes too many: %v", name, more, err)
			}
			if more <= len(data) {
				if _, err := Zlib(packed, len(data)-more); !errors.Is(err, ErrTooLong) {
					t.Errorf("%s, %d bytes too few: %v", name, more, err)
				}
			}
		}
	}
}

func TestTruncatedStreamsAreRefused(t *testing.T) {
	for name, data := range samples(t) {
		data = data[:min(len(data), 60_000)]
		packed := pack(t, data, flate.DefaultCompression)
		// At each place near both ends, and in growing steps between.
		for cut := 0; cut < len(packed); cut += 1 + cut*cut/20_000 {
			for _, at := range []int{cut, len(packed) - 1 - cut} {
				if _, err := Zlib(packed[:at], len(data)); !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrHeader) {
					t.Fatalf("%s, %d of %d bytes: %v", name, at, len(packed), err)
				}
			}
		}
	}
}

// Adler-32 is weak on little data: that damage may go unnoticed is no fault of the
// decoder as long as the standard library's sees the same.
func TestFlippedBitsAreSeenAsTheStandardLibrarySeesThem(t *testing.T) {
	data := samples(t)["four letters"][:3000]
	for _, level := range []int{flate.NoCompression, flate.BestSpeed, flate.BestCompression, flate.HuffmanOnly} {
		packed := pack(t, data, level)
		for bit := range 8 * len(packed) {
			packed[bit/8] ^= 1 << (bit % 8)
			got, err := Zlib(packed, len(data))
			want, wantErr := standard(packed, len(data))
			if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
				t.Errorf("level %d, bit %d: error %v, the standard library's %v", level, bit, err, wantErr)
			}
			packed[bit/8] ^= 1 << (bit % 8)
		}
	}
}

func TestSizesThatLieTakeLittleMemory(t *testing.T) {
	packed := pack(t, samples(t)["noise"], flate.DefaultCompression)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Zlib(packed, 1<<30); !errors.Is(err, ErrTooShort) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 24*uint64(len(packed)) {
		t.Errorf("%d bytes were taken for %d packed ones", taken, len(packed))
	}
}

func TestHeadersThatAreNotZlibAreRefused(t *testing.T) {
	good := pack(t, []byte("text"), flate.DefaultCompression)
	for _, head := range [][2]byte{{0x78, 0x9d}, {0x79, 0x9b}, {0x88, 0x1c}, {0x78, 0xbb}, {0x1f, 0x8b}} {
		bad := append(head[:], good[2:]...)
		if _, err := Zlib(bad, 4); !errors.Is(err, ErrHeader) {
			t.Errorf("% x: %v", head, err)
		}
	}
}

func TestAdler32OfAnyLength(t *testing.T) {
	noise := samples(t)["noise"]
	white := bytes.Repeat([]byte{0xff}, 200_000)
	for _, data := range [][]byte{noise, white} {
		for _, size := range []int{0, 1, 7, 8, 183, 184, 185, 367, 368, 1000, 65_535, 65_536, 65_537, 131_073, len(data)} {
			sum := updateAdler(adlerStart, data[:size/3])
			if got, want := updateAdler(sum, data[size/3:size]), adler32.Checksum(data[:size]); got != want {
				t.Errorf("%d bytes: %#x, want %#x", size, got, want)
			}
		}
	}
}

// FuzzZlib checks the decoder against the standard library's.
func FuzzZlib(f *testing.F) {
	for _, data := range samples(f) {
		for _, level := range []int{flate.NoCompression, flate.DefaultCompression, flate.HuffmanOnly} {
			data := data[:min(len(data), 2000)]
			f.Add(pack(f, data, level), len(data))
		}
	}
	f.Fuzz(func(t *testing.T, packed []byte, size int) {
		size = max(0, min(size, 1<<20))
		got, err := Zlib(packed, size)
		want, wantErr := standard(packed, size)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v, the standard library's %v", err, wantErr)
		}
		if err == nil && !bytes.Equal(got, want) {
			t.Fatal("other contents than the standard library's")
		}
	})
}

// standard decodes a stream of exactly size bytes with the standard library.
func standard(packed []byte, size int) ([]byte, error) {
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(size)+1))
	if err == nil && len(data) != size {
		err = errors.New("another size")
	}
	return data, err
}

// The streams of the fuzz target are small and so never reach the fast loop's end;
// here bits of larger ones are flipped.
func TestDamagedStreamsAreRefusedLikeTheStandardLibraryDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for name, data := range samples(t) {
		data = data[:min(len(data), 60_000)]
		packed := pack(t, data, flate.DefaultCompression)
		for range 300 {
			bit := random.IntN(8 * len(packed))
			packed[bit/8] ^= 1 << (bit % 8)
			got, err := Zlib(packed, len(data))
			want, wantErr := standard(packed, len(data))
			if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
				t.Errorf("%s, bit %d: error %v, the standard library's %v", name, bit, err, wantErr)
			}
			packed[bit/8] ^= 1 << (bit % 8)
		}
	}
}

func BenchmarkZlib(b *testing.B) {
	data := samples(b)["program"]
	packed := pack(b, data, flate.DefaultCompression)
	b.Run("here", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := Zlib(packed, len(data)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("standard", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := standard(packed, len(data)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
