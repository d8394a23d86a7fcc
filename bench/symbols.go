package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// symbolInput is one image whose map is made by callreel and by llvm-gsymutil.
type symbolInput struct {
	name string
	make func(context.Context, config) (string, error) // returns the file with DWARF

	// What is to be reached against llvm-gsymutil; "" for nothing said.
	cpu, memory string
	agreeOnly   bool // gsymutil does not read it, or it is too small to time
}

var symbolInputs = []symbolInput{
	{name: "vmlinux", make: vmlinux, cpu: "≤ 0.15", memory: "≤ 0.25"},
	{name: "image of 700 kernel modules", make: linkedModules, cpu: "≤ 0.12, < 2 s", memory: "≤ 0.25"},
	{name: "ceph-osd, zlib", make: cephOSD, cpu: "≤ 0.35", memory: "≤ 0.40"},
	{name: "libc, zlib", make: libc},
	{name: "C++ by clang", make: clangProgram},
	{name: "Go program", make: goProgram},
	{name: "one kernel module", make: kernelModule, agreeOnly: true},
	{name: "Mach-O dSYM", make: machO, agreeOnly: true},
}

// measureSymbols compiles and asks symbol maps beside LLVM's tools.
func measureSymbols(ctx context.Context, c config) []row {
	var rows []row
	type made struct {
		input     symbolInput
		file, out string
	}
	var list []made
	for _, in := range symbolInputs {
		if !strings.Contains(in.name, c.input) {
			continue
		}
		file, err := in.make(ctx, c)
		if err != nil {
			rows = append(rows, missing("symbols, "+in.name, in.cpu, err))
			continue
		}
		list = append(list, made{in, file, filepath.Join(c.dir, strings.ReplaceAll(in.name, " ", "-"))})
	}
	for _, m := range list {
		rows = append(rows, buildRows(ctx, c, m.input, m.file, m.out)...)
		if ctx.Err() != nil {
			return rows
		}
		rows = append(rows, lookupRows(ctx, c, m.input, m.file, m.out)...)
		if ctx.Err() != nil {
			return rows
		}
	}
	return rows
}

// buildRows makes both maps, in turns.
func buildRows(ctx context.Context, c config, in symbolInput, file, out string) []row {
	fmt.Fprintf(os.Stderr, "bench: symbols: building %s …\n", in.name)
	workers := strconv.Itoa(runtime.NumCPU())
	var ours, theirs runs
	var errOurs, errTheirs error
	for range c.rounds {
		if errOurs == nil {
			errOurs = ours.add(c.dir, exec.CommandContext(ctx, c.callreel, "symbols", "build", "-f", "-o", out+".symmap", file))
		}
		if errTheirs == nil && !in.agreeOnly {
			errTheirs = theirs.add(c.dir, exec.CommandContext(ctx, "llvm-gsymutil-19", "--quiet", "--convert", file, "--out-file", out+".gsym", "--num-threads", workers))
		}
	}
	what := "symbols build, " + in.name
	if errOurs != nil {
		return []row{missing(what, in.cpu, errOurs)}
	}
	own := row{what: what + ": CPU", value: seconds(ours.cpu), reach: in.cpu}
	memory := row{what: what + ": memory", value: megabytes(median(ours.rss)), reach: in.memory}
	if in.agreeOnly {
		return []row{own, memory}
	}
	size := row{what: what + ": map", value: fileSize(out + ".symmap"), reach: "≤ 0.80"}
	if errTheirs != nil {
		own.note = "llvm-gsymutil: " + firstLine(errTheirs)
		return []row{own, memory, size}
	}
	own.ratio = ratioText(medianRatio(ours.cpu, theirs.cpu))
	own.note = fmt.Sprintf("llvm-gsymutil %s CPU; wall %.2f against %.2f s", seconds(theirs.cpu), median(ours.wall), median(theirs.wall))
	memory.ratio, memory.note = ratioText(medianRatio(ours.rss, theirs.rss)), "llvm-gsymutil "+megabytes(median(theirs.rss))
	size.ratio, size.note = ratio(bytesOf(out+".symmap"), bytesOf(out+".gsym")), "GSYM "+fileSize(out+".gsym")
	return []row{own, memory, size}
}

// runs are what runs of one command took.
type runs struct {
	cpu, wall []float64 // seconds
	rss       []float64 // bytes
}

// add runs a command once. It leaves what the command used in dir for a moment.
func (r *runs) add(dir string, cmd *exec.Cmd) error {
	file := filepath.Join(dir, "used.json")
	name := filepath.Base(cmd.Path)
	if err := measured(cmd, file); err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return fmt.Errorf("%s: %w: %s", name, err, said)
	}
	r.wall = append(r.wall, time.Since(start).Seconds())
	u, err := readUsed(file)
	if err != nil {
		return err
	}
	r.cpu, r.rss = append(r.cpu, u.CPU), append(r.rss, u.RSS)
	return nil
}

func seconds(v []float64) string { return fmt.Sprintf("%.2f s", median(v)) }

func megabytes(v float64) string { return fmt.Sprintf("%.0f MB", v/1e6) }

func ratioText(v float64) string { return fmt.Sprintf("%.2f", v) }

func bytesOf(path string) float64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return float64(info.Size())
}

func fileSize(path string) string { return fmt.Sprintf("%.1f MB", bytesOf(path)/1e6) }

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
