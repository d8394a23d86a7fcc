package perf

import (
	"bytes"
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

// cpusOfStat is the list of the processors that /proc/stat has a line for (proc_stat(5)).
func cpusOfStat(stat []byte) []byte {
	var out [][]byte
	for line := range bytes.Lines(stat) {
		name, _, _ := bytes.Cut(line, []byte(" "))
		if number, ok := bytes.CutPrefix(name, []byte("cpu")); ok && len(number) > 0 {
			out = append(out, number)
		}
	}
	return bytes.Join(out, []byte(","))
}
