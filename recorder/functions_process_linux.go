package recorder

import (
	"context"
	"strings"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/choose"
	"github.com/callreel/callreel/recorder/internal/mapped"
)

// FunctionsOfProcess lists the functions of a running process, which is not stopped.
func FunctionsOfProcess(ctx context.Context, pid int, c Choice) (*Listing, error) {
	p, err := process.OpenForCode(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	p.LimitMemory(c.Memory)
	ch := choose.New(c.rules())
	search := mapped.Search{Chosen: ch.Module, NoFound: c.NoFound, Memory: object.NewAllowance(c.Memory), DebugFiles: c.debugFiles()}
	if err := search.Fetch(ctx, p, func(*object.Image) bool { return false }); err != nil {
		return nil, err
	}
	images, _, err := search.Find(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &Listing{}
	for _, im := range images {
		out.Images = append(out.Images, coverageOf(im.Probe, im.Module, im.Main))
		for i := range im.Plan {
			if f := &im.Plan[i]; ch.Function(f.Names(), f.Size) {
				l := listed(f, im.Module, im.Slide)
				// The names alias the file, which is about to be closed.
				l.Name = strings.Clone(l.Name)
				out.Functions = append(out.Functions, l)
			}
		}
		im.Close()
	}
	return out, ch.Check()
}
