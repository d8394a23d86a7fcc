package realtest

import (
	"fmt"
	"strconv"
	"strings"
)

// Counts are the numbers that a target prints on its last line.
type Counts map[string]int64

// ParseCounts reads a line such as
//
//	calls counted_a=12 counted_b=3 ok
//
// and returns an error when it does not end in "ok" or a number is malformed.
func ParseCounts(line string) (Counts, error) {
	words := strings.Fields(line)
	if len(words) < 2 || words[len(words)-1] != "ok" {
		return nil, fmt.Errorf("counts: line %q does not end in ok", line)
	}
	counts := Counts{}
	for _, word := range words[1 : len(words)-1] {
		key, value, found := strings.Cut(word, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if !found || err != nil {
			return nil, fmt.Errorf("counts: line %q: %q is not name=number", line, word)
		}
		counts[key] = n
	}
	return counts, nil
}
