package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/callreel/callreel/bench/programs"
)

// programRow is what recording does to a program.
type programRow struct {
	name string
	imageShare
	images   []imageShare // where they are more than one
	all      summary      // of a recording of all images
	cost     float64      // processor time of a portion of work, of that untraced
	dropped  string
	attached int
	err      error // why it wasn't measured, or how it was harmed
}

// imageShare is how much of an image, or some, is traced.
type imageShare struct {
	module            string
	functions, traced int
	refused           map[string]int
}

func (s *imageShare) count(tier, reason string) {
	s.functions++
	if tier != "" {
		s.traced++
		return
	}
	if s.refused == nil {
		s.refused = map[string]int{}
	}
	s.refused[reason]++
}

// programTable measures every program, and prints the table of the README.
func programTable(ctx context.Context, c config, w io.Writer) error {
	var rows []programRow
	for _, p := range programs.All() {
		if !strings.Contains(p.Name, c.input) {
			continue
		}
		row := programRow{name: p.Name, err: p.Missing(c.dir)}
		if row.err == nil {
			fmt.Fprintf(os.Stderr, "bench: %s …\n", p.Name)
			row = measureProgram(ctx, c, p)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rows = append(rows, row)
	}
	return printPrograms(w, rows)
}

func printPrograms(w io.Writer, rows []programRow) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", describeMachine()); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	line := func(cells ...string) { _, _ = fmt.Fprintf(t, "| %s |\n", strings.Join(cells, "\t| ")) } // Flush reports
	line("program", "functions", "traced", "refused", "with libraries", "cost", "survived")
	line("---", "---", "---", "---", "---", "---", "---")
	harmed := 0
	for _, r := range rows {
		if r.err != nil {
			said, _, _ := strings.Cut(r.err.Error(), "\n")
			line(r.name, "", "", "", "", "", said)
			if r.functions > 0 {
				harmed++
			}
			continue
		}
		line(r.name, thousands(r.functions), share(r.traced, r.functions), reasons(r.refused),
			fmt.Sprintf("%s of %s", share(r.all.Functions.Traced, r.all.Functions.Seen), thousands(r.all.Functions.Seen)),
			fmt.Sprintf("× %.2f, %s", r.cost, r.dropped), fmt.Sprintf("%d times", r.attached))
		for _, im := range r.images {
			line("– "+im.module, thousands(im.functions), share(im.traced, im.functions), reasons(im.refused), "", "", "")
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if harmed > 0 {
		return fmt.Errorf("%d programs were harmed or couldn't be recorded", harmed)
	}
	return nil
}

// reasons are the most frequent ones, the rest added up.
func reasons(refused map[string]int) string {
	const most = 3
	names := slices.SortedFunc(maps.Keys(refused), func(a, b string) int {
		return cmp.Or(refused[b]-refused[a], strings.Compare(a, b))
	})
	var said []string
	others := 0
	for i, name := range names {
		if i < most {
			said = append(said, fmt.Sprintf("%s %d", name, refused[name]))
		} else {
			others += refused[name]
		}
	}
	if others > 0 {
		said = append(said, fmt.Sprintf("others %d", others))
	}
	return strings.Join(said, ", ")
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// measureProgram records a program at work in turn with leaving it alone.
func measureProgram(ctx context.Context, c config, p programs.Program) (row programRow) {
	row = programRow{name: p.Name, imageShare: imageShare{functions: 1}}
	i, err := p.Start(ctx, c.dir)
	if err != nil {
		row.err = err
		return row
	}
	defer func() {
		if row.err == nil {
			row.err = i.End()
		} else {
			i.Kill()
		}
	}()
	m := &programMeasure{c: c, i: i}
	if row.err = m.warm(); row.err != nil {
		return row
	}
	if row.imageShare, row.images, row.err = functionsOf(ctx, c, i.PID, p); row.err != nil {
		return row
	}
	var plain, recorded []float64
	var sums []summary
	for range c.rounds {
		cpu, err := m.round()
		plain = append(plain, cpu)
		var r *recording
		if err == nil {
			r, err = startRecording(ctx, c, i.PID)
		}
		if err != nil {
			row.err = err
			return row
		}
		cpu, err = m.round()
		sum, stopErr := r.stop()
		if row.err = errors.Join(err, stopErr); row.err != nil {
			return row
		}
		recorded = append(recorded, cpu)
		sums = append(sums, sum)
		if row.err = leftAlone(i.PID); row.err != nil {
			return row
		}
	}
	row.cost, row.attached = medianRatio(recorded, plain), len(sums)
	row.all, row.dropped = sums[len(sums)-1], droppedNote(sums)
	return row
}

// programMeasure measures portions of a program's work.
type programMeasure struct {
	c    config
	i    *programs.Instance
	want string // the answer
	n    int    // of portions in a round
}

// warm does portions until they take what they will take, and finds how many make a round.
func (m *programMeasure) warm() error {
	var err error
	if m.want, err = m.i.Work(); err != nil {
		return err
	}
	for start := time.Now(); time.Since(start) < 2*time.Second; {
		if err := m.work(); err != nil {
			return err
		}
	}
	m.n = 1
	one, err := m.round()
	if err != nil {
		return err
	}
	const enough = 0.3 // seconds
	m.n = max(1, min(200, int(enough/one)))
	return nil
}

func (m *programMeasure) work() error {
	got, err := m.i.Work()
	if err == nil && got != m.want {
		err = fmt.Errorf("wrong: it answered %q, and %q before", got, m.want)
	}
	return err
}

// round returns the seconds of processor time that the process spent on a round of portions. All answers must be the first.
func (m *programMeasure) round() (float64, error) {
	before, err := processCPU(m.i.PID)
	if err != nil {
		return 0, err
	}
	for range m.n {
		if err := m.work(); err != nil {
			return 0, err
		}
	}
	after, err := processCPU(m.i.PID)
	return (after - before).Seconds(), err
}

// functionsOf counts the functions of the images that a program is, together and, where there are several, each.
func functionsOf(ctx context.Context, c config, pid int, p programs.Program) (all imageShare, images []imageShare, err error) {
	args := []string{"functions", "--json", "-p", strconv.Itoa(pid)}
	for _, image := range p.Images {
		args = append(args, "-m", image)
	}
	all.functions = 1 // for the row of a program that failed here
	out, err := exec.CommandContext(ctx, c.callreel, args...).Output()
	if err != nil {
		return all, nil, fmt.Errorf("callreel functions: %w", err)
	}
	var list struct {
		Functions []struct {
			Module string `json:"module"`
			Tier   string `json:"tier"`
			Reason string `json:"reason"`
		} `json:"functions"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return all, nil, fmt.Errorf("callreel functions: %w", err)
	}
	all.functions = 0
	for _, f := range list.Functions {
		all.count(f.Tier, f.Reason)
		k := slices.IndexFunc(images, func(im imageShare) bool { return im.module == f.Module })
		if k < 0 {
			k = len(images)
			images = append(images, imageShare{module: f.Module})
		}
		images[k].count(f.Tier, f.Reason)
	}
	if len(images) == 1 {
		images = nil
	}
	return all, images, nil
}

// reelOf is where an attacker's reels go.
func reelOf(c config, pid int) string { return filepath.Join(c.dir, fmt.Sprintf("soak-%d.reel", pid)) }
