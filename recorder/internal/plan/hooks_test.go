package plan

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// hooked has functions of all names that get a hook in a C program, and another.
const hooked = `
int prctl(int o) { return o + 1; }
long syscall(long n) { return n + 2; }
int seccomp(int o) { return o + 3; }
int _dl_find_object(void *pc) { return pc != 0; }
int execve(const char *path) { return *path; }
void _dl_debug_state(void) {}
int other(int x) { return x; }
`

// Where nothing but markers or imports is recorded, the functions that a recording has to look at get their hooks, on both processors.
func TestHooksAreThereWhereNoFunctionIsAskedFor(t *testing.T) {
	for _, processor := range []string{"x86_64", "aarch64"} {
		t.Run(processor, func(t *testing.T) {
			dir := t.TempDir()
			source, path := filepath.Join(dir, "hooked.c"), filepath.Join(dir, "libhooked.so")
			if err := os.WriteFile(source, []byte(hooked), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"--target=" + processor + "-linux-gnu", "-O1", "-nostdlib", "-shared", "-fPIC", "-fuse-ld=lld", "-fno-builtin", "-falign-functions=32", "-o", path, source}
			if said, err := exec.Command(realtest.Tool(t, realtest.Clang), args...).CombinedOutput(); err != nil {
				realtest.NeedThat(t, "clang and lld for "+processor+": "+string(said), err)
			}
			for _, markersOnly := range []bool{false, true} {
				im := openTestImage(t, path)
				im.MarksOnly = markersOnly
				seen := 0
				for _, f := range planImage(t, im) {
					if markersOnly && (f.Tier != TierNone || f.Reason != ReasonUnasked) {
						t.Errorf("%s isn't asked for, and is planned: %s", f.Name, f.Reason)
					}
					if want := hookOf(f.Name); f.Hook != want {
						t.Errorf("%s has hook %d, not %d", f.Name, f.Hook, want)
					}
					sites := f.HookSites()
					if f.Hook == HookNone {
						if len(sites) > 0 {
							t.Errorf("%s has the hook of another", f.Name)
						}
						continue
					}
					seen++
					if len(sites) != 1 || sites[0].Role != RoleEntry || sites[0].Addr < f.Addr || sites[0].Addr >= f.Addr+f.Size {
						t.Errorf("with markers only %t: the hook of %s is %+v; %s", markersOnly, f.Name, sites, f.Reason)
					}
				}
				if seen != 6 {
					t.Errorf("%d functions have a hook", seen)
				}
			}
		})
	}
}
