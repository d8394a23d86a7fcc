//go:build !man

package main

import "github.com/spf13/cobra"

func packagingVerbs() []*cobra.Command { return nil }
