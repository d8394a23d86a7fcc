package main

import (
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/export"
	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/unwind"
)

type stacksWriter = func(io.Writer, *export.Stacks) error

// stacks names each place once and makes of a profile what exports are made from.
func (f *sampleFlags) stacks(p *sampler.Profile, names *sampler.MapNames) (*export.Stacks, error) {
	out := &export.Stacks{
		Wall: p.Wall, Begun: p.Begun, Duration: p.Duration, Period: time.Second / time.Duration(p.Rate),
		Locations: make([]export.StackLocation, len(p.Locations)), Stacks: make([]export.Stack, len(p.Stacks)),
		Comments: []string{"callreel " + versionText()},
	}
	if p.Lost > 0 {
		out.Comments = append(out.Comments, things(p.Lost, "sample")+" lost")
	}
	images := map[*sampler.Image]int{}
	for k := range p.Locations {
		l := &p.Locations[k]
		to := &out.Locations[k]
		to.Address, to.Image = l.Address, -1
		if l.Name != "" && !f.raw {
			to.Calls = append(to.Calls, export.StackCall{Function: l.Name, Linkage: l.Name})
		}
		if l.Image == nil {
			continue
		}
		at, known := images[l.Image]
		if !known {
			at = len(out.Images)
			images[l.Image] = at
			out.Images = append(out.Images, export.StackImage{
				Path: l.Image.Path, ID: l.Image.ID(), Start: l.Image.Load, End: l.Image.Load + l.Image.Size, Offset: l.Image.Offset,
			})
		}
		if to.Image = at; f.raw || l.Name != "" {
			continue
		}
		for _, c := range names.Calls(l.Image, l.Link) {
			to.Calls = append(to.Calls, export.StackCall{Function: c.Function, Linkage: c.Linkage, File: c.File, Line: c.Line})
		}
	}
	for k := range p.Stacks {
		s := &p.Stacks[k]
		to := &out.Stacks[k]
		*to = export.Stack{Process: s.Process, Kernel: s.Kernel, Count: s.Count, Frames: make([]int, len(s.Frames))}
		for i, at := range s.Frames {
			to.Frames[i] = int(at)
		}
		if s.End != unwind.Complete {
			to.Missing = s.End.String()
		}
	}
	return out, nil
}

// imagesOf are the images of a profile's places, each once or more.
func imagesOf(p *sampler.Profile) (images []*sampler.Image) {
	for k := range p.Locations {
		if im := p.Locations[k].Image; im != nil && (len(images) == 0 || images[len(images)-1] != im) {
			images = append(images, im)
		}
	}
	return images
}

// export writes the file and returns its size.
func (f *sampleFlags) export(c *cobra.Command, s *export.Stacks) (written int64, err error) {
	all := func(w io.Writer) error {
		counted := &counter{Writer: w, after: func(n int64) { written = n }}
		return sampleFormats[f.format](counted, s)
	}
	if f.output == "-" {
		return written, all(c.OutOrStdout())
	}
	err = writeOutput(f.output, f.force, f.mode, all)
	return written, err
}

// sampleSummary is what --json and --summary write; the keys are promised.
type sampleSummary struct {
	Samples    uint64  `json:"samples"`
	Lost       uint64  `json:"lost"`
	Incomplete uint64  `json:"incomplete"`
	Throttled  uint64  `json:"throttled,omitempty"`
	Threads    int     `json:"threads"`
	Stacks     int     `json:"stacks"`
	Rate       int     `json:"rate"`
	Mode       string  `json:"mode"`       // "cpu" or "wall"
	UserOnly   bool    `json:"user_only"`  // time in the kernel is missing
	OwnCPU     float64 `json:"own_cpu_ms"` // all of it, with what names took
	Sampling   float64 `json:"sampling_cpu_ms"`
	CPU        float64 `json:"process_cpu_ms"` // of the process itself, meanwhile
	Unseen     float64 `json:"unseen_cpu_ms"`  // of it, what no sample stands for
	Duration   float64 `json:"duration_ms"`
	Bytes      int64   `json:"bytes"`
	Ended      bool    `json:"ended"`
	File       string  `json:"file"`
	ExitCode   *int    `json:"exit_code,omitempty"`
}

func (f *sampleFlags) summarize(p *sampler.Profile, written int64) *sampleSummary {
	s := &sampleSummary{
		Samples: p.Samples, Lost: p.Lost, Incomplete: p.Incomplete, Throttled: p.Throttled, Threads: p.Threads,
		Stacks: len(p.Stacks), Rate: p.Rate, Mode: "cpu", UserOnly: p.UserOnly, OwnCPU: ownCPUMilliseconds(),
		CPU: milliseconds(p.CPU), Unseen: milliseconds(p.Unseen), Sampling: milliseconds(p.OwnCPU), Duration: milliseconds(p.Duration), Bytes: written, Ended: p.Ended, File: f.output,
	}
	if p.Wall {
		s.Mode = "wall"
	}
	return s
}

// ownCPUMilliseconds is the processor time that this program has used, user and system.
func ownCPUMilliseconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return milliseconds(time.Duration(u.Utime.Nano() + u.Stime.Nano()))
}

// write writes the summary where the flags want it.
func (f *sampleFlags) write(c *cobra.Command, s *sampleSummary, command bool, code int) error {
	if command {
		s.ExitCode = &code
	}
	if err := writeSummary(f.summary, f.mode, s); err != nil {
		return err
	}
	switch {
	case f.json:
		return writeJSON(c.OutOrStdout(), s)
	case command && f.summary != "":
		return nil
	case command || f.output == "-": // stdout is the command's, or the profile's
		return f.say(c.ErrOrStderr(), s)
	}
	return f.say(c.OutOrStdout(), s)
}

// say writes the summary for people.
func (f *sampleFlags) say(w io.Writer, s *sampleSummary) error {
	text := fmt.Sprintf("%s: %s in %s, %s, %s lost", printable(f.output), things(s.Samples, "sample"),
		things(uint64(s.Threads), "thread"), bytesText(s.Bytes), count(s.Lost))
	if s.Incomplete > 0 {
		text += fmt.Sprintf(", %s not whole", count(s.Incomplete))
	}
	used := 0.0
	if s.Duration > 0 {
		used = 100 * s.Sampling / s.Duration
	}
	text += fmt.Sprintf("\n%.1f s at %d samples a second; sampling took %.1f ms of processor time (%.2f %%), all together %.1f ms\n",
		s.Duration/1000, s.Rate, s.Sampling, used, s.OwnCPU)
	_, err := io.WriteString(w, text)
	return err
}
