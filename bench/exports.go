package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/callreel/callreel/internal/bigreel"
)

// measureExports exports a recording of python3 in each format, against reading it for the report, and the same of a made-up reel whose
// threads' states are known.
func measureExports(ctx context.Context, c config) []row {
	path := filepath.Join(c.dir, "exports.reel")
	const work = "d = {}\nfor i in range(60000): d[str(i)] = sorted([i, -i])\n"
	record := exec.CommandContext(ctx, c.callreel, "record", "--lossless", "-o", path, "--", "/usr/bin/python3", "-c", work)
	if said, err := record.CombinedOutput(); err != nil {
		return []row{missing("export of a recording", "", fmt.Errorf("callreel record: %w: %s", err, said))}
	}
	rows := measureExportsOf(ctx, c, "a recording of python3", path)
	for _, switches := range []uint64{0, 400_000} {
		const events = 8_000_000
		what := fmt.Sprintf("%d M made-up events and %d switches", events/1_000_000, switches)
		if err := bigreel.Write(path, bigreel.Shape{Events: events, Threads: 8, Depth: 40, Switches: switches}); err != nil {
			rows = append(rows, missing("export of "+what, "", err))
			continue
		}
		rows = append(rows, measureExportsOf(ctx, c, what, path)...)
	}
	return rows
}

func measureExportsOf(ctx context.Context, c config, of, path string) []row {
	what := "export of " + of
	run := func(args ...string) (u used, err error) {
		u, _, _, err = usedBy(c.dir, exec.CommandContext(ctx, c.callreel, args...), 0)
		return u, err
	}
	formats := []string{"chrome", "perfetto", "speedscope", "pprof", "folded"}
	cpu, memory, sizes := map[string][]float64{}, map[string]float64{}, map[string]int64{}
	for range c.rounds {
		u, err := run("report", "--json", "--limit", "1", path)
		if err != nil {
			return []row{missing(what, "", err)}
		}
		cpu["report"] = append(cpu["report"], u.CPU)
		for _, format := range formats {
			out := filepath.Join(c.dir, "export."+format)
			u, err := run("export", path, "--format", format, "-f", "-o", out)
			if err != nil {
				return []row{missing(what, "", err)}
			}
			cpu[format] = append(cpu[format], u.CPU)
			memory[format] = max(memory[format], u.RSS)
			if info, err := os.Stat(out); err == nil {
				sizes[format] = info.Size()
			}
		}
	}
	reel, err := os.Stat(path)
	if err != nil {
		return []row{missing(what, "", err)}
	}
	rows := []row{{what: "reading " + of + " (report)", value: seconds(cpu["report"]) + " CPU", note: fmt.Sprintf("a reel of %.1f MB", float64(reel.Size())/1e6)}}
	for _, format := range formats {
		rows = append(rows, row{
			what: "export of it: " + format, value: seconds(cpu[format]) + " CPU",
			ratio: fmt.Sprintf("%.1f × reading", medianRatio(cpu[format], cpu["report"])),
			note:  fmt.Sprintf("%.1f MB, peak memory %.0f MB", float64(sizes[format])/1e6, memory[format]/1e6),
		})
	}
	return rows
}
