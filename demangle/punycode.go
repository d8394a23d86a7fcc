package demangle

import (
	"strings"
	"unicode/utf8"
)

// decodePunycode decodes RFC 3492 with another delimiter and other digits. Code points from
// U+D800 to U+D87F are the ASCII characters that no symbol of Swift may contain. Characters are
// inserted in the middle of what there is; the budget pays for what that moves.
func decodePunycode(s string, delimiter byte, value func(byte) int, b *budget) (string, bool) {
	var points []rune
	if i := strings.LastIndexByte(s, delimiter); i >= 0 {
		for _, c := range []byte(s[:i]) {
			if c >= 0x80 {
				return "", false
			}
			points = append(points, rune(c))
		}
		s = s[i+1:]
	}
	n, i, bias := 128, 0, 72
	for len(s) > 0 {
		before, weight := i, 1
		for k := 36; ; k += 36 {
			if s == "" {
				return "", false
			}
			digit := value(s[0])
			if digit < 0 || digit > (1<<31-1-i)/weight {
				return "", false
			}
			s = s[1:]
			i += digit * weight
			threshold := min(max(k-bias, 1), 26)
			if digit < threshold {
				break
			}
			if weight > (1<<31-1)/(36-threshold) {
				return "", false
			}
			weight *= 36 - threshold
		}
		count := len(points) + 1
		bias = punycodeBias(i-before, count, before == 0)
		n += i / count
		i %= count
		if n > utf8.MaxRune || !b.spend(1+(count-i)>>4) {
			return "", false
		}
		points = append(points, 0)
		copy(points[i+1:], points[i:])
		points[i] = rune(n)
		i++
	}
	var out strings.Builder
	for _, r := range points {
		if r >= 0xd800 && r < 0xd880 {
			r -= 0xd800
		} else if r >= 0xd880 && r < 0xe000 {
			return "", false
		}
		out.WriteRune(r)
	}
	return out.String(), true
}

// punycodeBias is the bias adaptation of RFC 3492 §6.1.
func punycodeBias(delta, count int, first bool) int {
	if first {
		delta /= 700
	} else {
		delta /= 2
	}
	delta += delta / count
	k := 0
	for ; delta > 35*26/2; k += 36 {
		delta /= 35
	}
	return k + 36*delta/(delta+38)
}
