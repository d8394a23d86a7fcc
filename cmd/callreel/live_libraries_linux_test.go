package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/reel"
)

const plugSource = `
struct message { int id; const char *text; };
static __attribute__((noinline)) int plug_parse(const char *name, int n, struct message *m) { m->id = n; m->text = name; return *name + n; }
static __attribute__((noinline)) int plug_price(struct message *m) { __asm__ volatile("" ::: "memory"); return m->id * 2; }
int plug_run(int n) { struct message m; int k = plug_parse(n & 1 ? "odd" : "even", n, &m); return k + plug_price(&m); }
`

const plugHost = `
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  while (access(argv[2], F_OK)) usleep(1000);
  void *library = dlopen(argv[1], RTLD_NOW);
  int (*run)(int) = library ? dlsym(library, "plug_run") : 0;
  if (!run) return 1;
  for (int i = 0;; i++) { if (run(i) == -1) return 2; usleep(1000); }
}
`

const plugUser = `
int plug_run(int);
int main(void) { for (int i = 0; i < 100; i++) if (plug_run(i) == -1) return 2; return 0; }
`

// plug is a library without symbols, whose debug file only a server has.
type plug struct {
	dir, library, id string
	target           atomic.Int64 // the process that must not be stopped or traced while something is fetched
	served           atomic.Int32
}

func newPlug(t *testing.T) *plug {
	t.Helper()
	realtest.Need(t, realtest.LivePtrace, realtest.GCC, realtest.Objcopy)
	realtest.CallreelPath(t)
	p := &plug{dir: t.TempDir()}
	p.library = filepath.Join(p.dir, "libplug.so")
	whole, debug := p.build(t, "whole.so", plugSource, "-g", "-fPIC", "-shared", "-Wl,--build-id", "-Wl,-soname,libplug.so"), filepath.Join(p.dir, "plug.debug")
	objcopy := realtest.Tool(t, realtest.Objcopy)
	realtest.Must(t, exec.Command(objcopy, "--strip-all", whole, p.library).Run())
	realtest.Must(t, exec.Command(objcopy, "--only-keep-debug", whole, debug).Run())
	o, err := object.Open(p.library)
	realtest.Must(t, err)
	p.id = o.ID()
	realtest.Must(t, o.Close())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pid := p.target.Load(); pid != 0 {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if err != nil || !strings.Contains(string(status), "TracerPid:\t0\n") || strings.Contains(string(status), "State:\tT") {
				t.Errorf("the process is traced or stopped while something is fetched: %v: %s", err, status)
			}
		}
		if r.URL.Path != "/buildid/"+p.id+"/debuginfo" {
			http.NotFound(w, r)
			return
		}
		p.served.Add(1)
		http.ServeFile(w, r, debug)
	}))
	t.Cleanup(s.Close)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("DEBUGINFOD_URLS", s.URL)
	return p
}

func (p *plug) build(t *testing.T, name, source string, flags ...string) string {
	t.Helper()
	path := filepath.Join(p.dir, name)
	realtest.Must(t, os.WriteFile(path+".c", []byte(source), 0o600))
	out, err := exec.Command(realtest.Tool(t, realtest.GCC), append([]string{"-O1", "-o", path, path + ".c"}, flags...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// check asserts that a reel has calls of the library's functions, by their names and with typed values.
func (p *plug) check(t *testing.T, file string) {
	t.Helper()
	f, err := reel.Open(file)
	realtest.Must(t, err)
	defer f.Close()
	types := map[string]string{}
	f.Functions(func(id uint32, fn reel.Function) bool {
		for _, a := range f.Arguments(id, false) {
			types[fn.Name] += a.Name + " " + a.Type + "; "
		}
		return true
	})
	for name, wants := range map[string][]string{"plug_parse": {"name char*", "n int"}, "plug_price": {"m->id int", "m->text char*"}} {
		for _, want := range wants {
			if !strings.Contains(types[name], want) {
				t.Errorf("%s: no %s among %s", name, want, types[name])
			}
		}
	}
	if p.served.Load() != 1 {
		t.Errorf("the debug file was fetched %d times", p.served.Load())
	}
}

var plugFlags = []string{"-m", "libplug*", "-f", "plug_p*", "--args", "plug_parse(name, n)", "--args", "plug_price(m->id, m->text)"}

// The libraries of a command are named and typed by what a server has, which is fetched before the command is started.
func TestLibrariesOfACommandAreFetchedForBeforeItsStart(t *testing.T) {
	p := newPlug(t)
	user := p.build(t, "user", plugUser, p.library, "-Wl,-rpath,$ORIGIN")
	script := filepath.Join(p.dir, "script")
	realtest.Must(t, os.WriteFile(script, []byte("#!"+user+"\n"), 0o700))
	for _, command := range []string{user, script} {
		file := filepath.Join(t.TempDir(), "user.reel")
		realtest.MustCallreel(t, append(append([]string{"record", "-o", file}, plugFlags...), "--", command)...)
		p.check(t, file)
	}
}

// A library that is loaded while recording is fetched for in the background, and recorded then.
func TestALibraryThatIsLoadedLaterIsFetchedFor(t *testing.T) {
	p := newPlug(t)
	host, load := p.build(t, "host", plugHost), filepath.Join(p.dir, "load")
	process := realtest.StartCommand(t, exec.Command(host, p.library, load))
	time.Sleep(100 * time.Millisecond) // until its libraries are there
	p.target.Store(int64(process.Pid()))
	r := realtest.StartRecording(t, append([]string{"-p", strconv.Itoa(process.Pid())}, plugFlags...)...)
	file := r.File
	realtest.Must(t, os.WriteFile(load, nil, 0o600))
	for start := time.Now(); !strings.Contains(r.Stderr(), "is recorded from now on") && time.Since(start) < time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond) // some calls
	if s := r.Stop(); s.Calls == 0 {
		t.Errorf("no calls: %+v", s)
	}
	for _, want := range []string{"waiting for a library", "libplug.so is recorded from now on: its debug file has been fetched"} {
		if !strings.Contains(r.Stderr(), want) {
			t.Errorf("no %q in %s", want, r.Stderr())
		}
	}
	p.check(t, file)
}
