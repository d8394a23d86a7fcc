package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// usageTemplate is what --help says below a verb's own words. It stands in for cobra's, which calls verbs commands.
const usageTemplate = `Usage:
  {{.UseLine}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Verbs:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

callreel VERB --help says more about a verb.{{end}}
`

func newRoot() *cobra.Command {
	cobra.EnableCommandSorting = false // verbs are listed in the order of use
	root := &cobra.Command{
		Use:   "callreel VERB",
		Short: "A flight recorder for native programs",
		Long: `callreel attaches to a running process, records every call of the functions you choose on a timeline, and
detaches leaving the process byte for byte as it was. Nothing is recompiled.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not permitted or not supported here.`,
		Example: `  callreel record -p 1234 -d 5s -o slow.reel
  callreel report slow.reel --sort max --limit 20`,
		SilenceErrors:              true,
		SilenceUsage:               true,
		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,
		Version:                    versionText(),
		Args:                       cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(c, args[0])
			}
			c.SetOut(c.ErrOrStderr())
			_ = c.Help() // to stderr, of whose failure nobody can be told
			return &exitError{code: exitUsage}
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true // newCompletion is in its place
	root.SetVersionTemplate("callreel {{.Version}}\n")
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError("%s: %w; see %s --help", c.CommandPath(), err, c.CommandPath())
	})
	root.AddCommand(newRecord(), newTop(), newFunctions(), newMarkers(), newImports(), newCall(), newDump(), newSet(), newPause(), newResume(), newReport(), newWhy(), newView(), newDiff(), newExport(), newDetach(), newHeader(), newStacks(), newSample(), newStall(), newCrash(), newSymbols(), newSymbolize(), newCFI(), newDemangle(), newDoctor(), newDemo(), newCompletion())
	root.AddCommand(packagingVerbs()...)
	root.SetHelpCommand(newHelp())
	for _, verb := range root.Commands() {
		verb.DisableFlagsInUseLine = true
	}
	completeValues(root)
	return root
}

// newHelp is `callreel help VERB`; like the verbs it refuses what it doesn't know.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:    "help [VERB]",
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			verb, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownVerb(c.Root(), strings.Join(args, " "))
			}
			verb.InitDefaultHelpFlag()
			return verb.Help()
		},
	}
}

func unknownVerb(root *cobra.Command, verb string) error {
	if near := root.SuggestionsFor(verb); len(near) > 0 {
		return usageError("callreel: there is no verb %q; near it is %s", verb, strings.Join(near, ", "))
	}
	return usageError("callreel: there is no verb %q; callreel --help lists them", verb)
}
