package main

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/recorder/invoke"
)

// completionShells write what lets a shell complete callreel's words.
var completionShells = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash": func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"zsh":  func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
	"fish": func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
}

func newCompletion() *cobra.Command {
	shells := slices.Sorted(maps.Keys(completionShells))
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Write what lets a shell complete verbs and flags",
		Long: `Completion writes a script to stdout that makes the Tab key complete verbs, flags and their values in bash, zsh or fish.
The packages install it; elsewhere, put it where your shell looks:

  bash  ~/.local/share/bash-completion/completions/callreel (needs the package bash-completion)
  zsh   a file _callreel in a folder of $fpath, before compinit runs
  fish  ~/.config/fish/completions/callreel.fish

The script asks callreel itself what fits, so it needn't be written again when callreel is updated.`,
		Example: `  callreel completion bash > ~/.local/share/bash-completion/completions/callreel
  callreel completion fish > ~/.config/fish/completions/callreel.fish
  source <(callreel completion zsh)`,
		ValidArgs: shells,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || completionShells[args[0]] == nil {
				return usageError("callreel completion: give one shell: %s; see callreel completion --help", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return completionShells[args[0]](c.Root(), c.OutOrStdout())
		},
	}
}

// flagValues are the values of flags that take a few words only, by verb and flag: what a shell offers.
var flagValues = map[string]map[string][]string{
	"call":      {"overdue": overdueNames[:], "type": strings.Split(invoke.Types, "|")},
	"cfi lint":  {"format": {"text", "json", "sarif"}},
	"diff":      {"sort": {"slower", "total", "self", "p50", "p99", "max"}},
	"export":    {"format": slices.Sorted(maps.Keys(exportFormats)), "weight": {"blocked", "calls", "cpu", "ready", "wall"}},
	"functions": {"found": {"yes", "no"}},
	"imports":   {"verdict": recorder.ImportVerdicts()},
	"record":    {"clock": {"full", "exit", "none"}, "found": {"yes", "no"}},
	"report":    {"sort": {"calls", "total", "self", "max"}},
	"sample":    {"format": {"pprof", "folded"}},
	"stall":     {"thread": {"main"}},
	"top":       {"sort": {"calls", "self", "p99", "max"}, "found": {"yes", "no"}},
}

// noOperands are the verbs that take flags only.
var noOperands = []string{"demo", "detach", "doctor", "dump", "imports", "pause", "resume", "set", "stacks", "stall", "top"}

// completeValues lets shells offer values of flags, and no files where none are meant.
func completeValues(c *cobra.Command) {
	values := flagValues[strings.TrimPrefix(c.CommandPath(), "callreel ")]
	for _, flag := range slices.Sorted(maps.Keys(values)) {
		offerFlag(c, flag, values[flag])
	}
	if c.Flags().Lookup("pid") != nil {
		offerFlag(c, "pid", nil)
	}
	if slices.Contains(noOperands, c.Name()) {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, verb := range c.Commands() {
		completeValues(verb)
	}
}

func offerFlag(c *cobra.Command, flag string, values []string) {
	// It fails for a flag that the verb doesn't have, which a test finds.
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
