package perf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var errList = errors.New("malformed list")

// maxCPUs is above what any kernel is configured for.
const maxCPUs = 1 << 16

// parseList reads a list of numbers and ranges: "0-3,8".
func parseList(text string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 31)
		last, err2 := strconv.ParseUint(to, 10, 31)
		if err1 != nil || err2 != nil || last < first || last >= maxCPUs || len(out) >= maxCPUs {
			return nil, fmt.Errorf("%w: %q", errList, text)
		}
		for n := first; n <= last; n++ {
			out = append(out, int(n))
		}
	}
	return out, nil
}
