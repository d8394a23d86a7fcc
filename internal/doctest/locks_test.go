package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// The page of locks lists all that are fields below recorder, and no others.
func TestEachLockIsListed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(realtest.Root(), "docs", "design", "locks.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			listed[name] = true
		}
	}
	locks := 0
	err = filepath.WalkDir(filepath.Join(realtest.Root(), "recorder"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, lock := range locksOf(f) {
			locks++
			if !listed[lock] {
				t.Errorf("%s: %s isn't listed", path, lock)
			}
			delete(listed, lock)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for lock := range listed {
		t.Errorf("there is no lock %s", lock)
	}
	if locks == 0 {
		t.Error("no lock was found")
	}
}

// locksOf are the fields of a file's structs that are mutexes: package.type.field.
func locksOf(f *ast.File) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range st.Fields.List {
			of, ok := field.Type.(*ast.SelectorExpr)
			if !ok || of.Sel.Name != "Mutex" && of.Sel.Name != "RWMutex" {
				continue
			}
			for _, name := range field.Names {
				names = append(names, f.Name.Name+"."+spec.Name.Name+"."+name.Name)
			}
		}
		return true
	})
	return names
}
