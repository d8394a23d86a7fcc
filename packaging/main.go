// Command packaging makes what people install, for make dist: for each processor a tar.gz, a .deb, an .rpm and the list
// of what is in them (SBOM), and SHA256SUMS. The same commit gives the same bytes, whoever makes them, where and when.
//
// nfpm, which writes the .deb and the .rpm, is a tool of a module of its own in the folder nfpm. So its hundred
// dependencies are pinned with their checksums, as go run nfpm@version wouldn't be, and none is in callreel's go.mod.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

// run makes a release into a folder that isn't there yet, or is empty.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("packaging", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("o", "dist", "the `folder` to make, or to fill")
	version := flags.String("version", "", "what git describe says: a tag as v1.2.3, or a commit")
	root := flags.String("root", ".", "the `folder` of callreel's go.mod")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q: no argument is expected", flags.Arg(0))
	}
	r := &release{describe: *version}
	var err error
	if r.root, err = filepath.Abs(*root); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(*out); err != nil {
		return err
	}
	if r.date, err = releaseDate(ctx, r.root); err != nil {
		return err
	}
	if r.version, err = packageVersion(r.describe, r.date); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if there, err := os.ReadDir(r.out); err != nil {
		return err
	} else if len(there) > 0 {
		return fmt.Errorf("%s is not empty", r.out)
	}
	work, err := os.MkdirTemp("", "callreel-packaging-")
	if err != nil {
		return err
	}
	r.work = work
	return errors.Join(r.make(ctx), os.RemoveAll(work))
}

// releaseDate is the time that all files have: the one of SOURCE_DATE_EPOCH (reproducible-builds.org), or the commit's.
func releaseDate(ctx context.Context, root string) (time.Time, error) {
	text, found := os.LookupEnv("SOURCE_DATE_EPOCH")
	if !found {
		cmd := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct")
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("the commit's time: %w (set SOURCE_DATE_EPOCH where there is no git)", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("%q is no time in seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
