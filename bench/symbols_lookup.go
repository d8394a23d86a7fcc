package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// asked is how many addresses are asked for.
const asked = 100_000

// lookupRows asks the maps for random addresses of functions.
func lookupRows(ctx context.Context, c config, in symbolInput, file, out string) []row {
	fmt.Fprintf(os.Stderr, "bench: symbols: asking %s …\n", in.name)
	addrs, err := functionAddresses(file, asked)
	if err != nil {
		return []row{missing("symbols lookup, "+in.name, "", err)}
	}
	m, err := symbols.Open(out + ".symmap")
	if err != nil {
		return []row{missing("symbols lookup, "+in.name, "", err)}
	}
	defer m.Close()
	rows := []row{rateRow(c, in, m, addrs), firstRow(c, in, out+".symmap", addrs[0])}
	if !in.agreeOnly {
		rows = append(rows, processRows(ctx, c, in, file, out, addrs)...)
	}
	return append(rows, agreeRow(ctx, in, m, file, addrs))
}

// functionAddresses picks random addresses in the functions that the symbol table gives a
// size, or where there is none of those, up to the next one. Every byte has the same chance.
func functionAddresses(file string, n int) ([]uint64, error) {
	im, err := object.Open(file)
	if err != nil {
		return nil, err
	}
	defer im.Close()
	list, err := im.FunctionSymbols()
	if err != nil {
		return nil, err
	}
	type span struct{ addr, size, before uint64 }
	var spans []span
	var total uint64
	least := sharedOffsets(im)
	for _, s := range list {
		inText := im.Type != object.Relocatable || im.Sections()[s.Section].Name == ".text"
		if s.Size == 0 || !inText || s.Addr < least {
			continue
		}
		spans = append(spans, span{s.Addr, s.Size, total})
		total += s.Size
	}
	if total == 0 {
		return nil, errors.New("no functions with a size")
	}
	r := rand.New(rand.NewPCG(1, 2)) // the same addresses in every run
	addrs := make([]uint64, n)
	for k := range addrs {
		at := r.Uint64N(total)
		i, found := slices.BinarySearchFunc(spans, at, func(s span, at uint64) int {
			if s.before <= at {
				return -1
			}
			return 1
		})
		if !found {
			i--
		}
		addrs[k] = spans[i].addr + at - spans[i].before
	}
	return addrs, nil
}

// sharedOffsets is the end of the offsets in .text that other code of a relocatable file has,
// too. There llvm-symbolizer answers for one section or the other.
func sharedOffsets(im *object.Image) uint64 {
	var end uint64
	sections := im.Sections()
	for k := range sections {
		if s := &sections[k]; im.Type == object.Relocatable && s.Executable() && s.Name != ".text" {
			end = max(end, s.Size)
		}
	}
	return end
}

// rateRow asks the library, on one core.
func rateRow(c config, in symbolInput, m *symbols.Map, addrs []uint64) row {
	frames := make([]symbols.Frame, 0, 64)
	var rates []float64
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range c.rounds + 1 {
		start := cpuTime()
		for _, a := range addrs {
			frames, _ = m.Lookup(a, frames[:0])
		}
		rates = append(rates, float64(len(addrs))/(cpuTime()-start).Seconds())
	}
	runtime.ReadMemStats(&after)
	rates = rates[1:] // the first reads the map from the disk
	return row{
		what: "symbols lookup, " + in.name + ": library, one core", value: fmt.Sprintf("%.2f M/s", median(rates)/1e6), reach: "≥ 2 M/s",
		note: fmt.Sprintf("%.4f allocations a lookup", float64(after.Mallocs-before.Mallocs)/float64(len(addrs)*(c.rounds+1))),
	}
}

// firstRow is the time from opening a map to its first answer.
func firstRow(c config, in symbolInput, path string, addr uint64) row {
	what, reach := "symbols lookup, "+in.name+": open to first answer", "≤ 1 ms"
	var took []float64
	for range 20 * c.rounds {
		start := time.Now()
		m, err := symbols.Open(path)
		if err != nil {
			return missing(what, reach, err)
		}
		m.Lookup(addr, nil)
		took = append(took, time.Since(start).Seconds())
		if err := m.Close(); err != nil {
			return missing(what, reach, err)
		}
	}
	return row{what: what, value: fmt.Sprintf("%.3f ms", median(took)*1e3), reach: reach}
}

// processRows asks the three programs for the same addresses, in turns. What is counted is
// all their CPU time, of which starting and printing are a part.
func processRows(ctx context.Context, c config, in symbolInput, file, out string, addrs []uint64) []row {
	var plain, forGSYM bytes.Buffer
	for _, a := range addrs {
		fmt.Fprintf(&plain, "%#x\n", a)
		fmt.Fprintf(&forGSYM, "%#x %s.gsym\n", a, out)
	}
	peers := []struct {
		name  string
		input []byte
		args  []string
	}{
		{"callreel symbols lookup", plain.Bytes(), []string{c.callreel, "symbols", "lookup", out + ".symmap"}},
		{"llvm-gsymutil", forGSYM.Bytes(), []string{"llvm-gsymutil-19", "--addresses-from-stdin"}},
		{"llvm-symbolizer", plain.Bytes(), []string{"llvm-symbolizer-19", "--obj=" + file}},
	}
	took, failed := make([]runs, len(peers)), make([]error, len(peers))
	for range c.rounds {
		for k, p := range peers {
			if failed[k] == nil {
				cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
				cmd.Stdin = bytes.NewReader(p.input)
				failed[k] = took[k].add(c.dir, cmd)
			}
		}
	}
	var rows []row
	for k, p := range peers {
		what := "symbols lookup, " + in.name + ": " + p.name
		if failed[k] != nil {
			rows = append(rows, missing(what, "", failed[k]))
			continue
		}
		r := row{
			what: what, value: fmt.Sprintf("%.0f k/s", float64(len(addrs))/median(took[k].cpu)/1e3),
			note: fmt.Sprintf("%s CPU, %s", seconds(took[k].cpu), megabytes(median(took[k].rss))),
		}
		if failed[0] == nil {
			r.ratio = ratioText(1 / medianRatio(took[k].cpu, took[0].cpu))
		}
		rows = append(rows, r)
	}
	return rows
}

// agreeRow checks every frame of every answer against llvm-symbolizer's: linkage names, files
// and lines. Names are compared as the image has them, since demanglers put blanks differently.
func agreeRow(ctx context.Context, in symbolInput, m *symbols.Map, file string, addrs []uint64) row {
	what, reach := "symbols lookup, "+in.name+": equal to llvm-symbolizer", "≥ 99.9 %"
	var input bytes.Buffer
	for _, a := range addrs {
		fmt.Fprintf(&input, "%#x\n", a)
	}
	cmd := exec.CommandContext(ctx, "llvm-symbolizer-19", "--no-demangle", "--obj="+file)
	cmd.Stdin = &input
	said, err := cmd.Output()
	if err != nil {
		return missing(what, reach, fmt.Errorf("llvm-symbolizer: %w", err))
	}
	data, err := dataSymbols(file)
	if err != nil {
		return missing(what, reach, err)
	}
	var equal, functions, ofData, k int
	var frames []symbols.Frame
	example := ""
	for block := range strings.SplitSeq(strings.TrimSuffix(string(said), "\n\n"), "\n\n") {
		if k >= len(addrs) {
			break
		}
		frames, _ = m.Lookup(addrs[k], frames[:0])
		ours, theirs := framesText(frames, m.Format() == object.MachO), symbolizerFrames(block)
		switch {
		case slices.Equal(ours, theirs):
			equal++
			functions++
		case namesData(theirs, data):
			ofData++
		case slices.EqualFunc(ours, theirs, sameFunction):
			functions++
			fallthrough
		default:
			if os.Getenv("BENCH_DIFFERENCES") != "" {
				fmt.Fprintf(os.Stderr, "%s %#x\n  ours   %q\n  theirs %q\n", in.name, addrs[k], ours, theirs)
			}
			if example == "" {
				example = fmt.Sprintf("; first difference at %#x", addrs[k])
			}
		}
		k++
	}
	if k != len(addrs) {
		return missing(what, reach, fmt.Errorf("llvm-symbolizer answered %d of %d addresses", k, len(addrs)))
	}
	r := row{
		what: what, value: fmt.Sprintf("%.3f %%", 100*float64(equal)/float64(k-ofData)), reach: reach,
		note: fmt.Sprintf("functions and inline chains alone %.3f %%%s", 100*float64(functions)/float64(k-ofData), example),
	}
	if ofData > 0 {
		r.note += fmt.Sprintf("; left out: %.1f %% that llvm-symbolizer names after data", 100*float64(ofData)/float64(k))
	}
	return r
}

// dataSymbols are the names that are no functions. In relocatable files llvm-symbolizer mixes
// sections up, whose offsets are alike.
func dataSymbols(file string) (map[string]bool, error) {
	im, err := object.Open(file)
	if err != nil {
		return nil, err
	}
	defer im.Close()
	list, err := im.Symbols()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, s := range list {
		if im.Type == object.Relocatable && !s.IsFunc() {
			names[s.Name] = true
		}
	}
	return names, nil
}

// namesData says whether the outermost function is data.
func namesData(frames []string, data map[string]bool) bool {
	if len(frames) == 0 {
		return false
	}
	name, _, _ := strings.Cut(frames[len(frames)-1], "\t")
	return data[name]
}

// sameFunction compares what stands before the place.
func sameFunction(a, b string) bool {
	x, _, _ := strings.Cut(a, "\t")
	y, _, _ := strings.Cut(b, "\t")
	return x == y
}

// symbolizerFrames reads one answer of llvm-symbolizer: pairs of lines, the function and
// its place with line and column. An answer of nothing is none.
func symbolizerFrames(block string) []string {
	lines := strings.Split(strings.Trim(block, "\n"), "\n")
	var list []string
	for k := 0; k+1 < len(lines); k += 2 {
		place := lines[k+1]
		if at := strings.LastIndexByte(place, ':'); at >= 0 {
			place = place[:at]
		}
		list = append(list, lines[k]+"\t"+place)
	}
	if len(list) == 1 && list[0] == "??\t??:0" {
		return nil
	}
	return list
}

// framesText writes our answer the same way. Of the names of Mach-O symbols both lose the
// underscore that C's have.
func framesText(frames []symbols.Frame, underscore bool) []string {
	var list []string
	for k := range frames {
		f := &frames[k]
		file, name := f.File(), f.Linkage
		if file == "" {
			file = "??"
		}
		if underscore {
			name = strings.TrimPrefix(name, "_")
		}
		list = append(list, fmt.Sprintf("%s\t%s:%d", name, file, f.Line))
	}
	return list
}
