package inflate

import (
	"math/rand/v2"
	"testing"
)

// randomCode makes the lengths of a complete code for at most count symbols, by
// splitting random codes in two.
func randomCode(random *rand.Rand, count int) []uint8 {
	lens := []uint8{1, 1}
	deep := random.IntN(2) == 0
	for len(lens) < count {
		k := random.IntN(len(lens))
		if deep {
			k = len(lens) - 1 - random.IntN(min(len(lens), 4))
		}
		if lens[k] == maxCodeLen {
			if random.IntN(40) == 0 {
				break
			}
			deep = false
			continue
		}
		lens[k]++
		lens = append(lens, lens[k])
	}
	random.Shuffle(len(lens), func(a, b int) { lens[a], lens[b] = lens[b], lens[a] })
	return lens
}

// canonical assigns the codes as RFC 1951 §3.2.2 tells it, with their bits reversed.
func canonical(lens []uint8) []uint32 {
	codes := make([]uint32, len(lens))
	code := uint32(0)
	for n := uint8(1); n <= maxCodeLen; n++ {
		for k := range lens {
			if lens[k] == n {
				for bit := range n {
					codes[k] |= code >> bit & 1 << (n - 1 - bit)
				}
				code++
			}
		}
		code <<= 1
	}
	return codes
}

func TestTablesDecodeEveryCode(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	table := make([]entry, litTableSize)
	for range 300 {
		lens := randomCode(random, 2+random.IntN(maxLitCodes-1))
		if !buildTable(table, lens, litBits, litEntry) {
			t.Fatalf("a complete code is refused: %v", lens)
		}
		for symbol, code := range canonical(lens) {
			stream := code | random.Uint32()<<lens[symbol] // and whatever follows
			e := table[stream&(1<<litBits-1)]
			used := uint32(0)
			if e&flagSubtable == flagSubtable {
				used = e & dropMask
				e = table[e>>valuePos+stream>>used&(1<<(e>>codePos&codeMask)-1)]
			}
			want, extra := litEntry(symbol)
			if e>>valuePos != want>>valuePos || e&flagLiteral != want&flagLiteral || used+e&dropMask != uint32(lens[symbol])+extra {
				t.Fatalf("symbol %d of %d bits: entry %#x after %d bits", symbol, lens[symbol], e, used)
			}
		}
	}
}

func TestTablesOfNoCodeAreRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	table := make([]entry, litTableSize)
	for range 1000 {
		lens := randomCode(random, 2+random.IntN(maxLitCodes-2))
		k := random.IntN(len(lens))
		if lens[k] == maxCodeLen {
			continue
		}
		lens[k]++ // leaves a code without a symbol
		if buildTable(table, lens, litBits, litEntry) {
			t.Fatalf("an incomplete code is taken: %v", lens)
		}
		lens[k] -= 2 // takes another's code
		if lens[k] > 0 && buildTable(table, lens, litBits, litEntry) {
			t.Fatalf("an ambiguous code is taken: %v", lens)
		}
	}
}
