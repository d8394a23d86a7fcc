package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// goMarkModes are what bench/target/gomarks measures.
var goMarkModes = []string{"bare", "instant", "int", "span", "made"}

// goMarkRows are what markers of package mark cost.
func goMarkRows(ctx context.Context, c config) []row {
	const what = "a Go program's marker"
	path := filepath.Join(c.dir, "gomarks")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./"+filepath.Join("bench", "target", "gomarks"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return []row{missing(what, "", errors.New(string(said)))}
	}
	t, err := converse(ctx, path)
	if err != nil {
		return []row{missing(what, "", err)}
	}
	idle, live := markCosts{}, markCosts{}
	var summaries []summary
	for range c.rounds {
		if err = idle.round(t, goMarkModes, 20*c.calls); err != nil {
			break
		}
		var s summary
		if s, err = live.recorded(ctx, c, t, goMarkModes); err != nil {
			break
		}
		s.Events = s.Marks // for what droppedNote says
		summaries = append(summaries, s)
	}
	if err := errors.Join(err, t.end()); err != nil {
		return []row{missing(what, "", err)}
	}
	none := live.added("instant", live)
	return []row{
		{what: what + ", nobody recording", value: ns2(idle.added("instant", idle))},
		{what: what + " recorded, no value", value: ns(none), note: droppedNote(summaries)},
		{what: "  and an integer", value: ns(live.added("int", live) - none)},
		{what: "  with a name that is made at run time", value: ns(live.added("made", live))},
		{what: "a Go program's span recorded", value: ns(live.added("span", live))},
	}
}
