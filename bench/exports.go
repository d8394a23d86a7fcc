package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// measureExports exports a recording of python3 in each format, against reading it for the report.
func measureExports(ctx context.Context, c config) []row {
	const what = "export of a recording"
	path := filepath.Join(c.dir, "exports.reel")
	const work = "d = {}\nfor i in range(60000): d[str(i)] = sorted([i, -i])\n"
	record := exec.CommandContext(ctx, c.callreel, "record", "--lossless", "-o", path, "--", "/usr/bin/python3", "-c", work)
	if said, err := record.CombinedOutput(); err != nil {
		return []row{missing(what, "", fmt.Errorf("callreel record: %w: %s", err, said))}
	}
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
	rows := []row{{what: "reading a recording of python3 (report)", value: seconds(cpu["report"]) + " CPU", note: fmt.Sprintf("a reel of %.1f MB", float64(reel.Size())/1e6)}}
	for _, format := range formats {
		rows = append(rows, row{
			what: "export of it: " + format, value: seconds(cpu[format]) + " CPU",
			ratio: fmt.Sprintf("%.1f × reading", medianRatio(cpu[format], cpu["report"])),
			note:  fmt.Sprintf("%.1f MB, peak memory %.0f MB", float64(sizes[format])/1e6, memory[format]/1e6),
		})
	}
	return rows
}
