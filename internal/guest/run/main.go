// run tests packages on arm64: it builds their tests for it, and runs them in an emulated machine with Debian's kernel and programs.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/callreel/callreel/internal/guest"
)

// config is what the flags say.
type config struct {
	machine guest.Machine
	tests   string // for -test.run
	skip    string // for -test.skip
	short   bool
	verbose bool
	each    time.Duration // for the tests of one package
	command string        // run instead of tests
	soak    time.Duration // bench -soak for this time, with more programs
	prepare bool          // only what the guest is made of
	wanted  guest.Wanted
	cache   string
	tree    string // the folder of go.mod
}

func main() {
	var c config
	flag.StringVar(&c.machine.CPU, "cpu", "max", "the processor, as qemu-system-aarch64 names it; cortex-a57 has neither LSE nor PAC nor BTI")
	flag.IntVar(&c.machine.CPUs, "smp", 2, "how many processors")
	flag.IntVar(&c.machine.Megabytes, "memory", 3072, "memory in MB")
	flag.BoolVar(&c.machine.Counts, "count", false, "let the processor, of which there is one, count instructions: perf events in the guest can count them then; slower")
	flag.DurationVar(&c.machine.Limit, "timeout", 25*time.Minute, "the guest is ended after that")
	flag.DurationVar(&c.each, "package-timeout", 20*time.Minute, "the tests of a package are ended after that")
	flag.StringVar(&c.tests, "run", "", "only tests that match, as for go test")
	flag.StringVar(&c.skip, "skip", "", "not those that match, as for go test")
	flag.BoolVar(&c.short, "short", false, "as for go test")
	flag.BoolVar(&c.verbose, "v", false, "as for go test")
	flag.StringVar(&c.command, "sh", "", "run this by sh in the guest instead of tests; callreel is on the PATH")
	flag.DurationVar(&c.soak, "soak", 0, "let recorders come, go and die in real programs for this time: bench -soak")
	flag.BoolVar(&c.prepare, "prepare", false, "only fetch what the guest is made of, and make its file system")
	flag.IntVar(&c.wanted.Pages, "pages", guest.KernelPages[0], "the size of the kernel's pages in KiB: 4, 16, or 64, which is compiled first, in some 20 minutes")
	flag.StringVar(&c.wanted.Mirror, "mirror", os.Getenv("CALLREEL_DEBIAN_MIRROR"), "of Debian's archive, such as http://deb.debian.org")
	flag.StringVar(&c.cache, "cache", "", "the folder of Debian's packages (default: one below the user's cache folder)")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./internal/guest/run [flags] [PACKAGE...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.run(ctx, flag.Args()); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

func say(format string, args ...any) {
	fmt.Printf("== "+format+"\n", args...)
}

func (c *config) run(ctx context.Context, patterns []string) error {
	began := time.Now()
	if c.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		c.cache = filepath.Join(dir, "callreel", "guest-arm64")
	}
	tree, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	c.tree = tree[0]
	c.wanted.Programs = c.soak > 0
	userland, err := guest.Prepare(ctx, c.cache, c.wanted, say)
	if err != nil || c.prepare {
		return err
	}
	dir, err := os.MkdirTemp("", "callreel-guest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := c.build(ctx, dir, patterns)
	if err != nil {
		return err
	}
	payload := filepath.Join(dir, "payload.tar")
	if err := guest.WritePayload(payload, b.jobs, b.files); err != nil {
		return err
	}
	say("built in %.0f s; booting %s with %d processors and pages of %d KiB", time.Since(began).Seconds(), c.machine.CPU, c.machine.CPUs, c.wanted.Pages)
	err = c.boot(ctx, userland, b, payload, filepath.Join(dir, "console"))
	if errors.Is(err, guest.ErrStuck) || errors.Is(err, errKernel) {
		say("%v; once more", err)
		err = c.boot(ctx, userland, b, payload, filepath.Join(dir, "console-again"))
	}
	return err
}

// boot runs all jobs in a guest.
func (c *config) boot(ctx context.Context, u *guest.Userland, b *built, payload, console string) error {
	r := &results{jobs: b.jobs, began: time.Now(), ended: make([]bool, len(b.jobs))}
	err := c.machine.Run(ctx, u, b.init, payload, console, r.event)
	said, _ := os.ReadFile(console)
	if err != nil {
		fmt.Printf("== the kernel's last words\n%s\n", said[max(0, len(said)-8<<10):])
	}
	if err = errors.Join(err, r.sum()); err != nil && bytes.Contains(said, []byte(kernelFault)) {
		return fmt.Errorf("%w: %w", errKernel, err)
	}
	return err
}

// kernelFault is what arm64's kernel says of a fault of its own. It is not for tests to fail by: seen once, as threads ended whose list of perf
// events was broken.
const kernelFault = "Internal error: Oops"

var errKernel = errors.New("the guest's kernel had a fault of its own")

// output returns the lines that a command prints.
func output(ctx context.Context, name string, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if lines[0] == "" {
		return nil, fmt.Errorf("%s: it prints nothing", strings.Join(cmd.Args, " "))
	}
	return lines, nil
}
