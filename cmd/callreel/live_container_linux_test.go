package main

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// A process that sees other files than we do has its debug files there: in its system's folder, and beside its program.
func TestDebugFilesOfAContainerAreFoundInIt(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC, realtest.Objcopy, realtest.Unshare, realtest.Superuser)
	realtest.CallreelPath(t)
	whole := realtest.Build(t, "arguments", "-g", "-Wl,--build-id")
	o, err := object.Open(whole)
	realtest.Must(t, err)
	id := o.ID()
	realtest.Must(t, o.Close())
	dir := t.TempDir()
	stripped, linked, debug := filepath.Join(dir, "server"), filepath.Join(dir, "linked"), filepath.Join(dir, "server.debug")
	objcopy := realtest.Tool(t, realtest.Objcopy)
	realtest.Must(t, exec.Command(objcopy, "--only-keep-debug", whole, debug).Run())
	realtest.Must(t, exec.Command(objcopy, "--strip-all", whole, stripped).Run())
	realtest.Must(t, exec.Command(objcopy, "--add-gnu-debuglink="+debug, stripped, linked).Run())
	// Below /mnt, which only the process sees so, there is a program of a name that is nowhere else.
	const begin = `mount -t tmpfs none /mnt && mkdir /mnt/inside && cp "$1" /mnt/inside/server && `
	for name, c := range map[string]struct{ program, script string }{
		"beside the program": {linked, begin + `cp "$2" /mnt/inside/server.debug && exec /mnt/inside/server 1000000000000`},
		"by its build ID": {stripped, begin + `mkdir -p /usr/lib/debug && mount -t tmpfs none /usr/lib/debug &&
			mkdir -p /usr/lib/debug/.build-id/` + id[:2] + ` && cp "$2" /usr/lib/debug/.build-id/` + id[:2] + `/` + id[2:] + `.debug &&
			exec /mnt/inside/server 1000000000000`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("DEBUGINFOD_URLS", "")
			hidden := filepath.Join(t.TempDir(), "hidden") // from us, by another name
			realtest.Must(t, exec.Command("cp", debug, hidden).Run())
			p := realtest.StartCommand(t, exec.Command(realtest.Tool(t, realtest.Unshare), "-m", "sh", "-c", c.script, "sh", c.program, hidden))
			pid := strconv.Itoa(p.Pid())
			var r realtest.Result
			for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(50 * time.Millisecond) {
				if r = realtest.Callreel(t, "functions", "-p", pid, "-m", "server", "-f", "texts", "--json"); r.Code == exitDone || !p.Alive() {
					break
				}
			}
			if strings.Count(r.Stdout, `"name":"texts"`) != 1 {
				t.Errorf("functions: %+v", r)
			}
			if r := realtest.MustCallreel(t, "stacks", "-p", pid, "--json"); !strings.Contains(r.Stdout, "arguments.c") {
				t.Errorf("stacks: %s", r.Stdout)
			}
		})
	}
}
