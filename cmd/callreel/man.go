//go:build man

package main

import (
	"github.com/spf13/cobra"

	"github.com/callreel/callreel/cmd/callreel/internal/manual"
)

// packagingVerbs are those that only make dist needs. They stand behind a build tag so that what writes manual pages,
// a Markdown parser above all, isn't part of the program that people run.
func packagingVerbs() []*cobra.Command {
	return []*cobra.Command{{
		Use:    "man DIR",
		Short:  "Write the manual pages into a folder",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(_ *cobra.Command, args []string) error { return manual.Write(newRoot(), args[0], versionText()) },
	}}
}
