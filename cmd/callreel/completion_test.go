package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// offered is what a shell is offered for the last of these words, and whether files are, too.
func offered(t *testing.T, words ...string) (values []string, files bool) {
	t.Helper()
	a := callreel("", append([]string{"__completeNoDesc"}, words...)...)
	if a.code != exitDone {
		t.Fatalf("%q: code %d, stderr %q", words, a.code, a.stderr)
	}
	lines := strings.Split(strings.TrimSpace(a.stdout), "\n")
	last := len(lines) - 1
	return lines[:last], lines[last] == ":0"
}

func TestCompletionOffersVerbsFlagsAndValues(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  []string // in any order; others may stand beside them
		files bool
	}{
		{[]string{"re"}, []string{"record", "report"}, false},
		{[]string{"symbols", ""}, []string{"build", "info", "lookup"}, false},
		{[]string{"record", "--lo"}, []string{"--lossless"}, false},
		{[]string{"export", "slow.reel", "--format", ""}, []string{"chrome", "folded", "perfetto", "pprof", "speedscope"}, false},
		{[]string{"record", "--clock", "e"}, []string{"exit"}, false},
		{[]string{"completion", ""}, []string{"bash", "fish", "zsh"}, false},
		{[]string{"report", ""}, nil, true},
		{[]string{"record", "-o", ""}, nil, true},
		{[]string{"record", "-p", ""}, nil, false},
		{[]string{"doctor", ""}, nil, false},
	} {
		got, files := offered(t, c.words...)
		for _, want := range c.want {
			if !slices.Contains(got, want) {
				t.Errorf("%q: %q is not among %q", c.words, want, got)
			}
		}
		if files != c.files {
			t.Errorf("%q: files are offered: %v", c.words, files)
		}
	}
}

// What is offered must be what --help says, and what verbs take no operand must be what they say.
func TestOfferedValuesAreThoseOfTheHelp(t *testing.T) {
	for name, flags := range flagValues {
		verb, rest, err := newRoot().Find(strings.Fields(name))
		if err != nil || len(rest) > 0 {
			t.Errorf("there is no verb %q", name)
			continue
		}
		for flag, values := range flags {
			f := verb.Flags().Lookup(flag)
			if f == nil {
				t.Errorf("%s has no --%s", name, flag)
				continue
			}
			for _, value := range values {
				if !strings.Contains(f.Usage, value) {
					t.Errorf("%s: the help of --%s doesn't name %q: %s", name, flag, value, f.Usage)
				}
				if got, _ := offered(t, append(strings.Fields(name), "--"+flag, "")...); !slices.Contains(got, value) {
					t.Errorf("%s --%s: %q is not among %q", name, flag, value, got)
				}
			}
		}
	}
	for _, name := range noOperands {
		if a := callreel("", name, "-p", "1", "operand"); a.code != exitUsage {
			t.Errorf("%s takes an operand: code %d", name, a.code)
		}
	}
}

func TestCompletionIsForTheShellsThatItNames(t *testing.T) {
	for _, args := range [][]string{{"completion"}, {"completion", "csh"}, {"completion", "bash", "zsh"}} {
		a := callreel("", args...)
		if a.code != exitUsage || a.stdout != "" || !strings.Contains(a.stderr, "bash, fish, zsh") {
			t.Errorf("%q: code %d, stdout %q, stderr %q", args, a.code, a.stdout, a.stderr)
		}
	}
}

// The shells themselves read the scripts, and ask callreel.
func TestShellsCompleteByTheScripts(t *testing.T) {
	program := realtest.CallreelPath(t)
	for _, c := range []struct {
		shell realtest.Capability
		ask   string // $1 is the script
	}{
		// The function is the one of the package bash-completion that the script calls, for words without quotes.
		{realtest.Bash, `_init_completion() { words=(callreel rec); cword=1; cur=rec; prev=callreel; }
			. "$1"; complete -p callreel; COMP_TYPE=9; __start_callreel; printf '%s\n' "${COMPREPLY[@]}"`},
		{realtest.Fish, `source $argv[1]; complete -C 'callreel rec'`},
		// Completing takes a line editor; what can be seen without is that the script is taken, and by whom.
		{realtest.Zsh, `autoload -U compinit; compinit -D -u; . "$1"; print $_comps[callreel]; callreel __complete rec`},
	} {
		t.Run(string(c.shell), func(t *testing.T) {
			realtest.Need(t, c.shell)
			home := t.TempDir()
			realtest.Must(t, os.Symlink(program, filepath.Join(home, "callreel")))
			a := callreel("", "completion", string(c.shell))
			if a.code != exitDone || a.stderr != "" {
				t.Fatalf("code %d, stderr %q", a.code, a.stderr)
			}
			script := write(t, home, "script", []byte(a.stdout))
			args := []string{"-c", c.ask, "shell", script}
			if c.shell == realtest.Fish {
				args = []string{"--no-config", "-c", c.ask, script}
			}
			cmd := exec.Command(string(c.shell), args...)
			cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "PATH="+home+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "record") || strings.Contains(string(out), "report") {
				t.Errorf("%v\n%s", err, out)
			}
			if c.shell == realtest.Zsh && !strings.HasPrefix(string(out), "_callreel\n") {
				t.Errorf("nothing completes callreel: %s", out)
			}
		})
	}
}
