package plan

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// retpolines plans testdata/retpoline.c, and names of its functions the tier or the reason. Without names they go by what
// they are with them.
func retpolines(t *testing.T, strip bool, compiler string, flags ...string) map[string]string {
	t.Helper()
	realtest.Need(t, realtest.AMD64)
	path := realtest.Tool(t, realtest.Capability(compiler))
	full := filepath.Join(t.TempDir(), "retpoline")
	args := append([]string{"-O2", "-fcf-protection=none", "-o", full, "testdata/retpoline.c"}, flags...)
	if msg, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	names := map[uint64]string{}
	im := openTestImage(t, full)
	fns := planImage(t, im)
	for i := range fns {
		names[fns[i].Addr] = fns[i].Name
	}
	if strip {
		objcopy := realtest.Tool(t, realtest.Objcopy)
		if msg, err := exec.Command(objcopy, "--strip-all", full).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, msg)
		}
		im = openTestImage(t, full)
		fns = planImage(t, im)
	}
	how := map[string]string{}
	for i := range fns {
		f := &fns[i]
		how[names[f.Addr]] = f.Tier.String() + f.Reason.String()
		for _, s := range f.Sites {
			for _, m := range im.Moved(&s, nil) {
				if m.Exit {
					how[names[f.Addr]] += " " + "exit"
				}
			}
		}
	}
	return how
}

// A jump by a thunk is what the jump through the register would be: a tail call where that is one, and inside the function
// where that is. Thunks themselves are never probed.
func TestAJumpByAThunkIsAnIndirectJump(t *testing.T) {
	for _, c := range []struct {
		name, compiler string
		with, without  []string
		strip          bool
	}{
		{name: "gcc", compiler: "gcc", with: []string{"-mindirect-branch=thunk"}},
		{name: "gcc, stripped", compiler: "gcc", with: []string{"-mindirect-branch=thunk"}, strip: true},
		{name: "gcc, not position-independent", compiler: "gcc", with: []string{"-mindirect-branch=thunk", "-no-pie"}, without: []string{"-no-pie"}},
		{name: "gcc, returns too", compiler: "gcc", with: []string{"-mindirect-branch=thunk", "-mfunction-return=thunk"}},
		{name: "clang", compiler: "clang-19", with: []string{"-mretpoline"}},
		{name: "clang, stripped", compiler: "clang-19", with: []string{"-mretpoline"}, strip: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := retpolines(t, c.strip, c.compiler, c.without...)
			got := retpolines(t, c.strip, c.compiler, c.with...)
			same := []string{"tail", "given", "calls", "plain"}
			if c.compiler == "gcc" {
				same = append(same, "dispatch") // clang makes direct jumps of computed gotos then
			}
			for _, f := range same {
				if got[f] != want[f] || want[f] == "" {
					t.Errorf("%s: %q with thunks, %q without", f, got[f], want[f])
				}
			}
			if tail := got["tail"]; tail != "exit-site exit" {
				t.Errorf("tail: %q", tail)
			}
			thunks := 0
			for name, how := range got {
				if strings.Contains(name, "thunk") || strings.Contains(name, "retpoline") {
					thunks++
					if how != ReasonLinkage.String() {
						t.Errorf("%s: %q", name, how)
					}
				}
			}
			if thunks == 0 && !c.strip {
				t.Errorf("no thunks: %v", got)
			}
		})
	}
}

// With the thunk in line there is a return that is none.
func TestAReturnThatIsAnIndirectCallIsNoExit(t *testing.T) {
	want := retpolines(t, false, "gcc")
	got := retpolines(t, false, "gcc", "-mindirect-branch=thunk-inline")
	for _, f := range []string{"dispatch", "tail", "given", "calls", "plain"} {
		if got[f] != want[f] || want[f] == "" {
			t.Errorf("%s: %q with thunks in line, %q without", f, got[f], want[f])
		}
	}
}
