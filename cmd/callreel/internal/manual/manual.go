package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// Write writes a page for root and one for each verb below it into a folder that is there: callreel.1,
// callreel-record.1 and so on. The date on them is SOURCE_DATE_EPOCH's. The texts of the tree are changed: it is of
// no other use afterwards.
func Write(root *cobra.Command, dir, version string) error {
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("manual pages: %w", err)
	} else if !info.IsDir() {
		return fmt.Errorf("manual pages: %s is not a folder", dir)
	}
	prepare(root)
	header := doc.GenManHeader{Section: "1", Source: root.Name() + " " + version, Manual: root.Name()}
	if err := doc.GenManTree(root, &header, dir); err != nil {
		return fmt.Errorf("manual pages in %s: %w", filepath.Clean(dir), err)
	}
	return nil
}

// prepare makes Markdown of the texts of a verb and of those below it, since cobra's writer reads them as that. No
// page says how it was made.
func prepare(c *cobra.Command) {
	c.DisableAutoGenTag, c.DisableFlagsInUseLine = true, true
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	if name, operands, found := strings.Cut(c.Use, " "); found {
		c.Use = name + " " + escape(operands)
	}
	c.Short, c.Long = escape(c.Short), markdown(c.Long+verbList(c))
	c.Flags().VisitAll(prepareFlag)
	for _, verb := range c.Commands() {
		prepare(verb)
	}
}

// verbList is a line for each verb below one, as --help has it; cobra's writer has their names only.
func verbList(c *cobra.Command) string {
	if !c.HasAvailableSubCommands() {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nThe verbs are:\n\n")
	for _, verb := range c.Commands() {
		if verb.IsAvailableCommand() {
			fmt.Fprintf(&b, "  %-*s  %s\n", verb.NamePadding(), verb.Name(), verb.Short)
		}
	}
	return b.String()
}

// prepareFlag lets a page have --output=OUT where cobra's writer would have the default. That follows in the text.
func prepareFlag(f *pflag.Flag) {
	name, usage := pflag.UnquoteUsage(f)
	f.Usage = escape(usage)
	if f.Value.Type() == "bool" {
		return
	}
	switch f.DefValue {
	case "", "0", "0s", "[]":
	default:
		if !strings.Contains(usage, "(default") {
			f.Usage += escape(" (default " + f.DefValue + ")")
		}
	}
	if name == "string" {
		name = "value"
	}
	name = strings.ToUpper(name)
	f.Value, f.DefValue, f.NoOptDefVal = word(name), escape(name), ""
}

// word is a flag's value that is only shown.
type word string

func (w word) String() string   { return string(w) }
func (w word) Type() string     { return "word" }
func (w word) Set(string) error { return nil }
