package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/callreel/callreel/internal/doctest"
	"github.com/callreel/callreel/internal/realtest"
)

// placeholders are what documents write where a value belongs that has a form.
var placeholders = map[string]string{"PID": "1", "DUR": "1s", "N": "1", "MODE": "0640"}

// checkUse checks the words behind callreel against the verbs and their flags as they are; whole says that nothing is left out.
func checkUse(words []string, whole bool) error {
	words = append([]string(nil), words...)
	for i, w := range words {
		if v, ok := placeholders[w]; ok {
			words[i] = v
		}
	}
	if len(words) == 0 {
		return nil // the name of the program
	}
	root := newRoot()
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	if words[0] == "VERB" || strings.HasPrefix(words[0], "-") {
		return ofFlags(root.ParseFlags(words[min(1, len(words)-1):]))
	}
	verb, rest, err := root.Find(words)
	if err != nil || verb == root {
		return fmt.Errorf("there is no verb %q", words[0])
	}
	if verb.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("%s has no verb %q", verb.CommandPath(), rest[0])
	}
	verb.InitDefaultHelpFlag()
	err = ofFlags(verb.ParseFlags(rest))
	var noValue *pflag.ValueRequiredError
	switch {
	case !whole && errors.As(err, &noValue): // the flag is named, not used
		return nil
	case err != nil || !whole:
		return err
	}
	return verb.ValidateArgs(verb.Flags().Args())
}

// ofFlags forgives that help is asked for.
func ofFlags(err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	return err
}

// flagsOf are the long flags of a verb and all below it.
func flagsOf(c *cobra.Command, into map[string]bool) {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	c.Flags().VisitAll(func(f *pflag.Flag) { into[f.Name] = true })
	for _, below := range c.Commands() {
		flagsOf(below, into)
	}
}

// ofOthers are flags of other programs that documents name alone.
var ofOthers = map[string]bool{"cap-add": true}

func TestDocumentsShowVerbsAndFlagsThatExist(t *testing.T) {
	docs, err := doctest.Documents(realtest.Root())
	if err != nil {
		t.Fatal(err)
	}
	flags, verbs := map[string]bool{}, map[string]bool{}
	root := newRoot()
	flagsOf(root, flags)
	for _, c := range root.Commands() {
		verbs[c.Name()] = true
	}
	commands, spans := 0, 0
	for _, d := range docs {
		for i := range d.Blocks {
			b := &d.Blocks[i]
			for _, c := range b.Commands() {
				for _, words := range doctest.Uses(c.Text) {
					commands++
					if err := checkUse(words, b.Kind == "sh" || b.Kind == "console"); err != nil {
						t.Errorf("%s:%d: %s: %v", d.Path, c.Line, c.Text, err)
					}
				}
			}
		}
		for _, s := range d.Spans {
			text, _, _ := strings.Cut(s.Text, "…") // and so on
			first, _, _ := strings.Cut(text, " ")
			switch name, long := strings.CutPrefix(text, "--"); {
			case first == "callreel", verbs[first] && first != text:
				spans++
				words := doctest.Simple(text)[0]
				if first == "callreel" {
					words = words[1:]
				}
				if err := checkUse(words, false); err != nil {
					t.Errorf("%s:%d: %s: %v", d.Path, s.Line, s.Text, err)
				}
			case long && name != "" && name[0] != ' ':
				spans++
				name = strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '=' })[0]
				if !flags[name] && !ofOthers[name] {
					t.Errorf("%s:%d: no verb has the flag --%s", d.Path, s.Line, name)
				}
			}
		}
	}
	if commands < 60 || spans < 60 {
		t.Errorf("only %d commands and %d mentions were found", commands, spans)
	}
}

func TestExamplesOfHelpShowFlagsThatExist(t *testing.T) {
	examples := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			for _, words := range doctest.Uses(line) {
				examples++
				if err := checkUse(words, true); err != nil {
					t.Errorf("%s: %s: %v", c.CommandPath(), strings.TrimSpace(line), err)
				}
			}
		}
		for _, below := range c.Commands() {
			check(below)
		}
	}
	check(newRoot())
	if examples < 40 {
		t.Errorf("only %d examples were found", examples)
	}
}

// keysOf are the keys that JSON of a struct has, with those of structs within it.
func keysOf(t reflect.Type, into map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			into[name] = true
			keysOf(f.Type, into)
		}
	}
}

func TestScriptingNamesEachKey(t *testing.T) {
	docs, err := doctest.Documents(realtest.Root())
	if err != nil {
		t.Fatal(err)
	}
	page := slices.IndexFunc(docs, func(d *doctest.Document) bool { return d.Path == "docs/scripting.md" })
	named := map[string]bool{}
	for _, s := range docs[page].Spans {
		for _, word := range strings.FieldsFunc(s.Text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }) {
			named[word] = true
		}
	}
	for _, v := range []any{summary{}, threadJSON{}, goroutineJSON{}, groupJSON{}, topFunctionJSON{}, topThreadJSON{}, listedFunction{}, coveredImage{}, diagnosis{}} {
		keys := map[string]bool{}
		keysOf(reflect.TypeOf(v), keys)
		if len(keys) == 0 {
			t.Errorf("%T has no keys", v)
		}
		for key := range keys {
			if !named[key] {
				t.Errorf("docs/scripting.md doesn't name %s of %T", key, v)
			}
		}
	}
}

func TestUsesThatDoNotExistAreFound(t *testing.T) {
	for use, ok := range map[string]bool{
		"record -p PID -d 5s":         true,
		"record -p PID --wibble":      false,
		"record -p PID -d 5":          false,
		"recrod -p PID":               false,
		"symbols build x":             true,
		"symbols wibble x":            false,
		"cfi lint FILE --format json": true,
		"VERB --help":                 true,
		"--version":                   true,
		"record -p PID -- ls":         false,
		"record -o x -- ls --wibble":  true,
		"diff a":                      false,
	} {
		if err := checkUse(strings.Fields(use), true); (err == nil) != ok {
			t.Errorf("%s: %v", use, err)
		}
	}
}
