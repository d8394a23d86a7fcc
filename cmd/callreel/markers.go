package main

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/recorder"
)

func newMarkers() *cobra.Command {
	var pid processID
	var names, modules, debugDirs []string
	var memory memoryLimit
	var asJSON bool
	c := &cobra.Command{
		Use:   "markers -p PID | FILE",
		Short: "List the markers that a program has compiled in, and whether they can be recorded",
		Long: `Markers lists the places at which a process, or an ELF file, says something itself: SDT markers, which bpftrace and
perf call USDT probes. Each has a provider and a name, where it is, its arguments as the note has them, what it begins
or ends, and its semaphore, a number that is above 0 while somebody wants to know. Nothing is stopped or changed.

A marker that can't be recorded has a reason in place of its kind. One that can, but not together with its function,
says so. Of arguments "read" means that a system call reads them, since their memory might not be there. In braces is
the variable that is in an argument's place, and its type, where debug information has it.

Go programs have no SDT notes. Theirs are the functions of package github.com/callreel/callreel/mark, which do nothing
but be called; they have the names that callreel.h would give them. A string's place is its address and its length.`,
		Example: `  callreel markers /usr/bin/python3.11
  callreel markers -p 1234 --name 'postgresql:query*'`,
		Args: func(_ *cobra.Command, args []string) error {
			if (pid > 0) == (len(args) > 0) || len(args) > 1 {
				return usageError("callreel markers: give either -p PID or one FILE; see callreel markers --help")
			}
			for _, g := range names {
				if _, err := path.Match(g, ""); err != nil {
					return usageError("callreel markers: --name %s: not a glob", g)
				}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			status := newStatus(c.ErrOrStderr())
			f := choiceFlags{modules: modules, memory: memory, debugDirs: debugDirs}
			chosen, err := f.choice(c.CommandPath(), pid, status)
			if err != nil {
				return err
			}
			var list []recorder.MarkerSite
			if pid > 0 {
				list, err = recorder.MarkersOfProcess(c.Context(), int(pid), names, chosen)
			} else {
				list, err = recorder.MarkersOf(c.Context(), args[0], names, chosen)
			}
			status.clear()
			if err != nil && len(list) == 0 {
				return err
			}
			if asJSON {
				if werr := markersJSON(c.OutOrStdout(), list); werr != nil {
					return werr
				}
				return err
			}
			if werr := markersText(c.OutOrStdout(), list); werr != nil {
				return werr
			}
			return err
		},
	}
	fl := c.Flags()
	addPID(fl, &pid, "the process to look at, by its `PID`")
	fl.StringArrayVar(&names, "name", nil, "only markers whose name, or provider:name, matches this `GLOB` (repeatable)")
	fl.StringArrayVarP(&modules, "module", "m", nil, "with -p: only this `MODULE`: the base name of its file, or a glob (repeatable)")
	memory.add(fl)
	addDebugDirs(fl, &debugDirs)
	fl.BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// listedMarker is a site of a marker as --json has it; the keys are promised.
type listedMarker struct {
	Provider      string           `json:"provider"`
	Name          string           `json:"name"`
	Module        string           `json:"module"`
	Address       string           `json:"address"`
	Function      string           `json:"function,omitempty"`
	Kind          string           `json:"kind"`
	Title         string           `json:"title,omitempty"`
	Semaphore     string           `json:"semaphore"` // address, "" for none
	Count         *int             `json:"count,omitempty"`
	Arguments     []listedArgument `json:"arguments"`
	Reason        string           `json:"reason"`
	WithFunctions string           `json:"with_functions"`
	Joined        bool             `json:"joined,omitempty"`
	Single        bool             `json:"single_store,omitempty"`
	Go            bool             `json:"go,omitempty"`
}

// listedArgument is one of its arguments: the text of the note, the place that it names, and how that is read, or why it can't be.
type listedArgument struct {
	Name   string `json:"name"`
	Text   string `json:"text"`
	Place  string `json:"place"`
	Size   uint8  `json:"size"`
	Signed bool   `json:"signed"`
	Float  bool   `json:"float,omitempty"`
	How    string `json:"how,omitempty"`
	Reason string `json:"reason,omitempty"`

	Variable string `json:"variable,omitempty"`
	Type     string `json:"type,omitempty"`
}

func markersJSON(w io.Writer, list []recorder.MarkerSite) error {
	b := bufio.NewWriter(w)
	b.WriteByte('{')
	err := jsonList(b, "markers", len(list), func(i int) any {
		s := &list[i]
		m := listedMarker{Provider: s.Provider, Name: s.Name, Module: s.Module, Address: fmt.Sprintf("%#x", s.Address), Function: s.Function,
			Kind: s.Kind.String(), Title: s.Title, Reason: s.Reason, WithFunctions: s.WithFunctions, Joined: s.Joined, Single: s.Single, Go: s.Go,
			Arguments: []listedArgument{}}
		if s.Semaphore != 0 {
			m.Semaphore = fmt.Sprintf("%#x", s.Semaphore)
		}
		if s.Count >= 0 {
			m.Count = &s.Count
		}
		for k, a := range s.Arguments {
			_, place, _ := strings.Cut(a.Text, "@") // "" of one that can't be parsed
			m.Arguments = append(m.Arguments, listedArgument{fmt.Sprintf("arg%d", k+1), a.Text, place, a.Size, a.Signed, a.Float, s.Values[k].How, s.Values[k].Reason, s.Values[k].Variable, s.Values[k].Type})
		}
		return m
	})
	if err != nil {
		return err
	}
	b.WriteString("\n}\n")
	return b.Flush()
}

func markersText(w io.Writer, list []recorder.MarkerSite) error {
	b := bufio.NewWriter(w)
	recordable, with, inGo := 0, 0, false
	for i := range list {
		s := &list[i]
		inGo = inGo || s.Go
		how := s.Kind.String()
		if s.Reason != "" {
			how = "- " + s.Reason
		} else {
			recordable++
		}
		if s.WithFunctions == "" {
			with++
		}
		text := fmt.Sprintf("%#016x  %-22s %s!%s:%s", s.Address, how, printable(s.Module), printable(s.Provider), printable(s.Name))
		for k, a := range s.Arguments {
			text += " " + printable(a.Text)
			v := s.Values[k]
			if v.Type != "" {
				text += printable(" {" + strings.TrimSpace(v.Type+" "+v.Variable) + "}")
			}
			if v.Reason != "" {
				text += " (not recorded)"
			} else if v.How == "read" {
				text += " (read)"
			}
		}
		if s.Function != "" {
			text += " in " + printable(demangle.Name(s.Function))
		}
		switch {
		case s.Count >= 0:
			text += fmt.Sprintf("; semaphore %d", s.Count)
		case s.Semaphore != 0:
			text += "; semaphore"
		}
		if s.Reason == "" && s.WithFunctions != "" {
			text += "; not with its function: " + s.WithFunctions
		}
		if s.Reason != "" && s.WithFunctions == "" {
			text += "; with its function only"
		}
		fmt.Fprintln(b, text)
	}
	fmt.Fprintf(b, "%d of %s can be recorded, %d where their functions are, too\n", recordable, things(uint64(len(list)), "marker site"), with)
	if inGo {
		fmt.Fprintln(b, "Go programs have no SDT notes: these are functions of package mark")
	}
	return b.Flush()
}
