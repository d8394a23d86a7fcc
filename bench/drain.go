package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// measureDrain runs the recorder's own benchmark of the way from the rings to
// the disk, which reports events/s.
func measureDrain(ctx context.Context, c config) []row {
	const what, reach = "drain to disk, one core", "≥ 60 M events/s"
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "Drain", "-cpu", "1",
		"-count", strconv.Itoa(c.rounds), "./recorder/...")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return []row{missing(what, reach, fmt.Errorf("go test -bench Drain ./recorder/...: %w", err))}
	}
	rates, names := map[string][]float64{}, []string(nil)
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		for i, word := range words {
			if word != "events/s" || i == 0 {
				continue
			}
			v, err := strconv.ParseFloat(words[i-1], 64)
			if err != nil {
				continue
			}
			if rates[words[0]] == nil {
				names = append(names, words[0])
			}
			rates[words[0]] = append(rates[words[0]], v)
		}
	}
	if len(names) == 0 {
		return []row{missing(what, reach, errors.New("no benchmark named Drain reports events/s"))}
	}
	var rows []row
	for _, name := range names {
		rows = append(rows, row{
			what: what + " (" + strings.TrimPrefix(name, "Benchmark") + ")", reach: reach,
			value: fmt.Sprintf("%.0f M events/s", median(rates[name])/1e6),
		})
	}
	return rows
}
