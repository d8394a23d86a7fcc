package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// processors are those that callreel records on, by Go's names.
var processors = []string{"amd64"}

// release is what one run makes.
type release struct {
	root, out, work string // folders: of go.mod, of the result, for what is in between
	describe        string // the version as the program says it
	version         string // the same as packages have it
	date            time.Time

	common []file // installed with each processor's program
}

// make makes everything.
func (r *release) make(ctx context.Context) error {
	if err := r.writeCommon(ctx); err != nil {
		return err
	}
	for _, processor := range processors {
		if err := r.makeFor(ctx, processor); err != nil {
			return fmt.Errorf("linux/%s: %w", processor, err)
		}
	}
	return writeSums(r.out)
}

// makeFor makes the files of one processor.
func (r *release) makeFor(ctx context.Context, processor string) error {
	binary := filepath.Join(r.work, "callreel-"+processor)
	if err := r.build(ctx, binary, "linux", processor); err != nil {
		return err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	sbom, err := r.sbom(binary, processor)
	if err != nil {
		return err
	}
	licences, err := r.licences(ctx, binary)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("callreel_%s_linux_%s", r.version, processor)
	if err := os.WriteFile(filepath.Join(r.out, name+".cdx.json"), sbom, 0o644); err != nil {
		return err
	}
	files := slices.Concat(r.common, []file{
		{"bin/callreel", 0o755, program},
		{docs + "/copyright", 0o644, []byte(noLicence)},
		{docs + "/third-party-licences", 0o644, licences},
	})
	if err := r.tarball(filepath.Join(r.out, name+".tar.gz"), processor, files); err != nil {
		return err
	}
	for _, packager := range []string{"deb", "rpm"} {
		if err := r.pack(ctx, packager, processor, files); err != nil {
			return err
		}
	}
	return nil
}

// build builds callreel as make does, with nothing in it of this machine or of its settings.
func (r *release) build(ctx context.Context, out, system, processor string, flags ...string) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=" + r.describe, "-o", out}
	cmd := r.command(ctx, "go", append(append(args, flags...), "./cmd/callreel")...)
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOWORK=off")
	if system != "" {
		cmd.Env = append(cmd.Env, "GOOS="+system, "GOARCH="+processor)
	}
	return finish(cmd)
}

// command is a program that is run for the release, in the folder of go.mod.
func (r *release) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.date.Unix(), 10), "TZ=UTC", "LC_ALL=C.UTF-8")
	return cmd
}

// finish runs a command whose output is of interest only if it fails.
func finish(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out)
	}
	return nil
}
