package why

import "strings"

// roleOf is a thread's name with its digits folded: threads of a pool have the same.
func roleOf(name string) string {
	var b strings.Builder
	digit := false
	for _, c := range name {
		is := c >= '0' && c <= '9'
		if !is {
			b.WriteRune(c)
		} else if !digit {
			b.WriteByte('#')
		}
		digit = is
	}
	return b.String()
}
