package invoke

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/object"
)

// ErrName is the error of a name that no function or symbol has, or several have.
var ErrName = errors.New("no such symbol")

// An image is a file of code that the process has loaded.
type image struct {
	path  string
	file  *object.Image
	slide uint64
	load  uint64
}

func (i *image) name() string { return path.Base(i.path) }

// A found symbol is one in an image that is loaded.
type found struct {
	image  *image
	symbol object.Symbol
}

func (f found) address() uint64 { return f.symbol.Addr + f.image.slide }

// findSymbol finds the one symbol of that name that wanted accepts. pattern chooses images by their base name, "" is any. What is exported
// goes before what only a program's symbol table has.
func findSymbol(images []*image, pattern, name, version string, wanted func(*object.Symbol) bool) (found, error) {
	var all []found
	var names []string
	matched := false
	for _, im := range images {
		if pattern != "" && !glob.Match(pattern, im.name()) {
			continue
		}
		matched = true
		symbols, _ := im.file.Symbols() // what a damaged table has still counts
		for k := range symbols {
			s := &symbols[k]
			if !s.Defined() || !wanted(s) {
				continue
			}
			if s.Name != name {
				names = append(names, s.Name)
			} else if version == "" || s.Version == version {
				all = append(all, found{im, *s})
			}
		}
	}
	if !matched {
		var known []string
		for _, im := range images {
			known = append(known, im.name())
		}
		return found{}, fmt.Errorf("%w: %s: no image of that name is loaded%s", ErrName, pattern, nearText(pattern, known))
	}
	all = narrow(all)
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(all) == 0:
		full := name
		if version != "" {
			full += "@" + version
		}
		return found{}, fmt.Errorf("%w: %s%s", ErrName, full, nearText(name, names))
	}
	var where []string
	for _, f := range all {
		where = append(where, fmt.Sprintf("%s:%s", f.image.name(), name))
	}
	slices.Sort(where)
	where = slices.Compact(where)
	return found{}, fmt.Errorf("%w: several are called %s; choose one of %s", ErrName, name, strings.Join(where, ", "))
}

func nearText(name string, names []string) string {
	slices.Sort(names)
	if near := glob.Near(name, slices.Compact(names)); len(near) > 0 {
		return "; near it are " + strings.Join(near, ", ")
	}
	return ""
}

// narrow leaves one symbol of each image: what is exported, then the newest version.
func narrow(all []found) []found {
	if slices.ContainsFunc(all, func(f found) bool { return f.symbol.Dynamic }) {
		all = slices.DeleteFunc(all, func(f found) bool { return !f.symbol.Dynamic })
	}
	var out []found
	for _, f := range all {
		k := slices.IndexFunc(out, func(o found) bool { return o.image == f.image })
		switch {
		case k < 0:
			out = append(out, f)
		case compareVersions(f.symbol.Version, out[k].symbol.Version) > 0:
			out[k] = f
		}
	}
	return out
}

// compareVersions compares two versions of symbols, such as GLIBC_2.2.5 and GLIBC_2.34, by their numbers.
func compareVersions(a, b string) int {
	as, bs := strings.FieldsFunc(a, isVersionDot), strings.FieldsFunc(b, isVersionDot)
	for k := 0; k < len(as) && k < len(bs); k++ {
		x, xErr := strconv.Atoi(as[k])
		y, yErr := strconv.Atoi(bs[k])
		if xErr == nil && yErr == nil {
			if x != y {
				return cmp.Compare(x, y)
			}
		} else if c := cmp.Compare(as[k], bs[k]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(as), len(bs))
}

func isVersionDot(r rune) bool { return r == '.' || r == '_' }

// findFunction finds the function that an expression calls.
func findFunction(images []*image, e Expression) (found, error) {
	f, err := findSymbol(images, e.Image, e.Function, e.Version, func(s *object.Symbol) bool { return s.IsFunc() })
	if err != nil {
		return f, err
	}
	if f.symbol.Binding == object.Local {
		return f, fmt.Errorf("%w: %s is local to its file, and a compiler may have given such a function rules of its own; only functions that other files may call can be called", ErrRefused, e.Function)
	}
	return f, nil
}

// findAddress is the value of a literal that is an address.
func findAddress(images []*image, l Literal) (uint64, error) {
	if l.Kind == Symbol {
		f, err := findSymbol(images, l.Image, l.Name, "", func(s *object.Symbol) bool { return s.Kind != object.TLS })
		return f.plus(l.Add), err
	}
	for _, im := range images {
		if glob.Match(l.Image, im.name()) {
			return im.load + uint64(l.Add), nil
		}
	}
	return 0, fmt.Errorf("%w: %s: no image of that name is loaded", ErrName, l.Image)
}

// plus is an address some bytes from the symbol's, 0 if there is no symbol.
func (f found) plus(add int64) uint64 {
	if f.image == nil {
		return 0
	}
	return f.address() + uint64(add)
}
