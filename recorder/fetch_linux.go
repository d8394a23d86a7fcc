package recorder

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/capture"
	"github.com/callreel/callreel/recorder/internal/choose"
	"github.com/callreel/callreel/recorder/internal/needed"
	"github.com/callreel/callreel/recorder/internal/trigger"
)

// fetch lets what the images of the process lack be fetched. That may take long, so nothing has been done to the process yet, and what is
// mapped in it is looked at again behind that.
func (r *recording) fetch(ctx context.Context) error {
	typed, err := r.typed()
	if err != nil {
		return err
	}
	return r.newSearch(choose.New(r.opt.Choice.rules())).Fetch(ctx, r.s.Process, typed)
}

// fetchCommand is fetch for a program that isn't started yet, and the libraries that it will load at its start.
func (r *recording) fetchCommand(ctx context.Context) error {
	typed, err := r.typed()
	if err != nil {
		return err
	}
	path, err := exec.LookPath(r.opt.Command[0])
	if err != nil {
		return nil // starting it says so
	}
	if path, err = needed.Program(path); err != nil {
		return nil // likewise
	}
	ch, files := choose.New(r.opt.Choice.rules()), r.opt.Choice.debugFiles()
	own := []string{filepath.Base(r.opt.Command[0]), filepath.Base(path)}
	needed.Visit(path, os.Getenv, func(path string, o *object.Image) bool {
		names := append(own, filepath.Base(path))
		if real, err := filepath.EvalSymlinks(path); err == nil {
			names = append(names, filepath.Base(real))
		}
		if own = nil; ch.Module(names...) {
			files.Fetch(ctx, o, typed(o))
		}
		return ctx.Err() == nil
	})
	return ctx.Err()
}

// typed returns what says of an image whether types of values of its functions are wanted. Of one without a symbol table it isn't known
// which functions it has.
func (r *recording) typed() (func(im *object.Image) bool, error) {
	captures, err := capture.New(capture.Options{Args: r.opt.Args, Returns: r.opt.Returns, Conditions: r.opt.Conditions})
	if err != nil {
		return nil, err
	}
	results := slices.DeleteFunc(slices.Clone(r.opt.triggers()), func(t Trigger) bool { return t.Kind != trigger.OnResult })
	triggers := trigger.NewSet(results)
	return func(im *object.Image) bool {
		if captures.Empty() && triggers.Empty() {
			return false
		}
		if im.Section(".symtab") == nil {
			return true
		}
		found := false
		err := im.VisitSymbols(func(s *object.Symbol) bool {
			if s.Defined() && s.IsFunc() {
				names := glob.Spellings([]string{s.Name})
				found = captures.Wants(names) || triggers.Wants(names)
			}
			return !found
		})
		return found && err == nil
	}, nil
}
