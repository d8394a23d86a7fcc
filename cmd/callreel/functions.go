package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sort"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/recorder"
)

func newFunctions() *cobra.Command {
	var pid int
	var choice choiceFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "functions -p PID | FILE",
		Short: "List functions and how each would be probed, or why it would not",
		Example: `  callreel functions -p 1234 -m redis-server
  callreel functions /usr/bin/redis-server --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if (pid > 0) == (len(args) > 0) {
				return usageError("callreel functions: give either -p PID or FILE")
			}
			var list []recorder.Function
			var err error
			if pid > 0 {
				list, err = recorder.FunctionsOfProcess(c.Context(), pid, choice.choice())
			} else {
				list, err = recorder.FunctionsOf(c.Context(), args[0], choice.choice())
			}
			if err != nil {
				return err
			}
			if asJSON {
				return functionsJSON(c.OutOrStdout(), list)
			}
			return functionsText(c.OutOrStdout(), list)
		},
	}
	fl := c.Flags()
	fl.IntVarP(&pid, "pid", "p", 0, "the process to look at; it is not stopped")
	choice.add(fl)
	fl.BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// functionsJSON streams the list.
func functionsJSON(w io.Writer, list []recorder.Function) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, `{"functions":[`)
	for i := range list {
		f := &list[i]
		line, err := json.Marshal(struct {
			Name    string `json:"name"`
			Module  string `json:"module"`
			Address string `json:"address"`
			Size    uint64 `json:"size"`
			Tier    string `json:"tier"`
			Reason  string `json:"reason"`
		}{f.Name, f.Module, fmt.Sprintf("%#x", f.Address), f.Size, f.Tier, f.Reason})
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(line)
	}
	fmt.Fprint(b, "\n]}\n")
	return b.Flush()
}

func functionsText(w io.Writer, list []recorder.Function) error {
	b := bufio.NewWriter(w)
	traced := 0
	reasons := map[string]int{}
	for i := range list {
		f := &list[i]
		how := f.Tier
		if how == "" {
			how = "- " + f.Reason
			reasons[f.Reason]++
		} else {
			traced++
		}
		fmt.Fprintf(b, "%#016x %7d  %-24s %s!%s\n", f.Address, f.Size, how, printable(f.Module), printable(demangle.Name(f.Name)))
	}
	fmt.Fprintf(b, "%d of %d functions can be traced (%.1f %%)\n", traced, len(list), 100*float64(traced)/float64(max(1, len(list))))
	names := make([]string, 0, len(reasons))
	for r := range reasons {
		names = append(names, r)
	}
	sort.Slice(names, func(i, j int) bool { return reasons[names[i]] > reasons[names[j]] })
	for _, r := range names {
		fmt.Fprintf(b, "%7d  %s\n", reasons[r], r)
	}
	return b.Flush()
}
