package recorder

import (
	"os"
	"path/filepath"
	"testing"
)

const noLimit = ^uint64(0)

// What a control group leaves is the least of what it and all above it leave.
func TestLeftInGroupsIsTheLeastOfAllAbove(t *testing.T) {
	root := t.TempDir()
	write := func(group, name, text string) {
		t.Helper()
		dir := filepath.Join(root, group)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	limit := func(group, most, used string) {
		t.Helper()
		write(group, "memory.max", most)
		write(group, "memory.current", used)
	}
	limit("free", "max\n", "5\n")
	limit("free/tight", "1000\n", "400\n")
	limit("free/tight/loose", "900\n", "100\n")
	limit("over", "1000\n", "1001\n")
	limit("odd", "1000 bytes\n", "1\n")
	limit("odd/below", "700\n", "300\n")
	write("half", "memory.max", "10\n")
	limit("huge", "18446744073709551615\n", "1\n")
	for _, c := range []struct {
		path string
		want uint64
	}{
		{"/", noLimit}, // the root has no files
		{"", noLimit},
		{"/free", noLimit},
		{"/free/tight", 600},
		{"/free/tight/loose", 600},
		{"/free/tight/loose/unknown/deeper", 600},
		{"/free/../free//tight/", 600},
		{"/../../free/tight", 600}, // never above the root
		{"/over", 0},
		{"/odd", noLimit},
		{"/odd/below", 400},
		{"/half", noLimit},
		{"/huge", noLimit - 1},
		{"/nowhere", noLimit},
	} {
		if got := leftInGroups(root, c.path, "memory.max", "memory.current"); got != c.want {
			t.Errorf("%q leaves %d, want %d", c.path, got, c.want)
		}
	}
}

func TestAvailableMemoryIsSomeAndNoMoreThanTheMachineHas(t *testing.T) {
	if got := availableMemory(); got == 0 || got == noLimit {
		t.Errorf("%d bytes", got)
	}
}
