package realtest

import (
	"debug/elf"
	"testing"
)

// FunctionAddress is the link address of the first function of an ELF file whose symbol has a name that is wanted.
func FunctionAddress(t testing.TB, path string, wanted func(name string) bool) uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && wanted(s.Name) {
			return s.Value
		}
	}
	t.Fatalf("realtest: %s has no such function", path)
	return 0
}
