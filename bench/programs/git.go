package programs

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// startGit has git read all objects of a packed repository, over and over.
func startGit(ctx context.Context, p *place) (*Instance, error) {
	repo := filepath.Join(p.dir, "repo")
	git := func(stdin string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, p.found[0], append([]string{"-C", repo}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+p.dir)
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", args[0], err)
		}
		return string(out), nil
	}
	if err := p.make(ctx, p.found[0], "init", "-q", "repo"); err != nil {
		return nil, err
	}
	if _, err := git(history(150), "fast-import", "--quiet"); err != nil {
		return nil, err
	}
	if _, err := git("", "repack", "-adfq", "--depth=50"); err != nil {
		return nil, err
	}
	names, err := git("", "rev-list", "--objects", "--all")
	if err != nil {
		return nil, err
	}
	var portion strings.Builder
	for line := range strings.Lines(names) {
		portion.WriteString(line[:40] + "\n")
	}
	portion.WriteString("work:file-3\nwork~20^{tree}\nnosuch\n" + marker + "\n")
	return converse(ctx, portion.String(), p.found[0], "-C", repo, "cat-file", "--batch")
}

// history is a stream for fast-import.
func history(commits int) string {
	var b strings.Builder
	content := func(n, i int) string {
		var text strings.Builder
		for line := range 200 {
			v := line
			if line%50 == i%50 {
				v = i
			}
			fmt.Fprintf(&text, "line %d of file %d says %d\n", line, n, v*7919%1000)
		}
		return text.String()
	}
	for i := range commits {
		message := fmt.Sprintf("commit %d\n", i)
		fmt.Fprintf(&b, "commit refs/heads/work\ncommitter A <a@example.org> %d +0000\ndata %d\n%s", 1700000000+i*60, len(message), message)
		for _, n := range []int{i % 7, i % 11} {
			text := content(n, i)
			fmt.Fprintf(&b, "M 100644 inline file-%d\ndata %d\n%s\n", n, len(text), text)
		}
	}
	return b.String()
}
