package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// A row is one figure of the table.
type row struct {
	what  string
	value string // measured, with its unit; or "n/a", the reason being the note
	ratio string // against what the row says, if anything
	reach string // what is to be reached, from the issue that set it
	note  string
}

// missing is the row of a figure that could not be measured.
func missing(what, reach string, err error) row {
	reason, _, _ := strings.Cut(err.Error(), "\n")
	return row{what: what, value: "n/a", reach: reach, note: reason}
}

func printTable(w io.Writer, machine string, rows []row) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", machine); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { _, _ = fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t ")) } // Flush reports
	line("what", "measured", "ratio", "to reach", "")
	line("----", "--------", "-----", "--------", "")
	for _, r := range rows {
		line(r.what, r.value, r.ratio, r.reach, r.note)
	}
	return t.Flush()
}

// share is a part of a whole in per cent.
func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

// median returns the middle of v, which must not be empty.
func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// medianRatio returns the median of v/of round by round: neighbours in time see
// the same machine, so a load that comes and goes cancels out.
func medianRatio(v, of []float64) float64 {
	var ratios []float64
	for i := range min(len(v), len(of)) {
		ratios = append(ratios, v[i]/of[i])
	}
	return median(ratios)
}

// describeMachine names what the figures depend on.
func describeMachine() string {
	cpu := runtime.GOARCH
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, found := strings.CutPrefix(line, "model name"); found {
				cpu = strings.Trim(name, " \t:\n")
				break
			}
		}
	}
	kernel := runtime.GOOS
	if data, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel += " " + strings.TrimSpace(string(data))
	}
	return fmt.Sprintf("%s, %d cores, %s", cpu, runtime.NumCPU(), kernel)
}
