package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/recorder"
)

func newFunctions() *cobra.Command {
	var pid processID
	var choice choiceFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "functions -p PID | FILE",
		Short: "List functions, and how each would be probed or why it would not be",
		Long: `Functions lists every function of a process or of an ELF file: its address, its size, and the tier of its probe or the
reason why it gets none. Nothing is stopped or changed. Functions that have neither a symbol nor call frame information
are looked for in the code; their names are found_0x and the address. The last lines say how much of each image's code
belongs to known functions.

` + liveNaming,
		Example: `  callreel functions -p 1234 -m redis-server
  callreel functions /usr/bin/redis-server --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if (pid > 0) == (len(args) > 0) || len(args) > 1 {
				return usageError("callreel functions: give either -p PID or one FILE; see callreel functions --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			status := newStatus(c.ErrOrStderr())
			chosen, err := choice.choice(c.CommandPath(), pid, status)
			if err != nil {
				return err
			}
			var list *recorder.Listing
			if pid > 0 {
				list, err = recorder.FunctionsOfProcess(c.Context(), int(pid), chosen)
			} else {
				list, err = recorder.FunctionsOf(c.Context(), args[0], chosen)
			}
			status.clear()
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
	addPID(fl, &pid, "the process to look at, by its `PID`")
	choice.add(fl)
	fl.BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// listedFunction is a function as --json has it; the keys are promised.
type listedFunction struct {
	Name    string `json:"name"`
	Module  string `json:"module"`
	Address string `json:"address"`
	Size    uint64 `json:"size"`
	Tier    string `json:"tier"`
	Reason  string `json:"reason"`
	Found   string `json:"found,omitempty"`
}

// coveredImage is an image as JSON has it; the keys are promised.
type coveredImage struct {
	Module string  `json:"module"`
	Main   bool    `json:"main"`
	Text   uint64  `json:"text_bytes"`
	Known  uint64  `json:"known_bytes"`
	Found  uint64  `json:"found_bytes"`
	Share  float64 `json:"share"`
}

func coveredImages(list []recorder.Coverage) []coveredImage {
	out := make([]coveredImage, 0, len(list))
	for i := range list {
		c := &list[i]
		out = append(out, coveredImage{c.Module, c.Main, c.Text, c.Known, c.Found, math.Round(c.Share()*1e4) / 1e4})
	}
	return out
}

// coverageText says what is known of an image's code.
func coverageText(c *recorder.Coverage) string {
	text := fmt.Sprintf("%.1f %% of %s of code in %s belong to functions", 100*c.Share(), bytesText(int64(c.Text)), printable(c.Module))
	if c.Found > 0 {
		text += fmt.Sprintf(" (%.1f %% to such that were found in the code)", 100*float64(c.Found)/float64(max(1, c.Text)))
	}
	if c.Small() {
		text += ": what is in the rest is not seen"
	}
	return text
}

// functionsJSON streams the list.
func functionsJSON(w io.Writer, all *recorder.Listing) error {
	list := all.Functions
	b := bufio.NewWriter(w)
	b.WriteByte('{')
	err := jsonList(b, "functions", len(list), func(i int) any {
		f := &list[i]
		return listedFunction{f.Name, f.Module, fmt.Sprintf("%#x", f.Address), f.Size, f.Tier, f.Reason, f.Found}
	})
	if err != nil {
		return err
	}
	b.WriteString(",\n")
	images := coveredImages(all.Images)
	if err := jsonList(b, "images", len(images), func(i int) any { return images[i] }); err != nil {
		return err
	}
	b.WriteString("\n}\n")
	return b.Flush()
}

func functionsText(w io.Writer, all *recorder.Listing) error {
	list := all.Functions
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
	names := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})
	for _, r := range names {
		fmt.Fprintf(b, "%7d  %s\n", reasons[r], r)
	}
	for i := range all.Images {
		fmt.Fprintln(b, coverageText(&all.Images[i]))
	}
	return b.Flush()
}
