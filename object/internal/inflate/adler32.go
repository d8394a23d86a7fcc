package inflate

import "encoding/binary"

const adlerMod = 65521

// adlerWords is how many words of eight bytes can be summed up in lanes of 16 bits:
// the second sum of a lane reaches 255 × 22 × 23 / 2 = 64,515.
const adlerWords = 23

// updateAdler continues an Adler-32 checksum (RFC 1950 §8.2) over p. It does the
// bytes of a word side by side, at some three times the speed of hash/adler32, whose
// loop waits for one addition a byte.
func updateAdler(sum uint32, p []byte) uint32 {
	a, b := uint64(sum&0xffff), uint64(sum>>16)
	for len(p) >= 8*adlerWords {
		// 64 KiB at most: the sums stay far below 64 bits, and are reduced then.
		part := p[:min(len(p), 1<<16)]
		part = part[:len(part)-len(part)%(8*adlerWords)]
		p = p[len(part):]
		for ; len(part) >= 8*adlerWords; part = part[8*adlerWords:] {
			first, second := laneSums((*[8 * adlerWords]byte)(part))
			b += 8*adlerWords*a + second
			a += first
		}
		a, b = a%adlerMod, b%adlerMod
	}
	for _, c := range p {
		a += uint64(c)
		b += a
	}
	return uint32(b%adlerMod)<<16 | uint32(a%adlerMod)
}

// laneSums returns the sum of the bytes and the sum of the bytes each times its
// distance from the end.
func laneSums(p *[8 * adlerWords]byte) (first, second uint64) {
	const lanes = 0x00ff00ff00ff00ff
	// even and odd hold the sums of the bytes 0, 2, 4, 6 and 1, 3, 5, 7 of all words
	// so far; evens and odds the sums of those after each word.
	var even, odd, evens, odds uint64
	for k := 0; k < len(p); k += 8 {
		w := binary.LittleEndian.Uint64(p[k : k+8])
		evens += even
		odds += odd
		even += w & lanes
		odd += w >> 8 & lanes
	}
	for k := range uint64(4) {
		e, o := even>>(16*k)&0xffff, odd>>(16*k)&0xffff
		first += e + o
		second += 8*(evens>>(16*k)&0xffff+odds>>(16*k)&0xffff) + (8-2*k)*e + (7-2*k)*o
	}
	return first, second
}

// adlerStart is the checksum of nothing.
const adlerStart = 1
