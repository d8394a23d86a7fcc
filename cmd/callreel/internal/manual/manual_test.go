package manual

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestMarkdownKeepsWhatIsWritten(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"plain, -p and 'F > 5ms'", "plain, -p and 'F \\> 5ms'\n"},
		{"*Command and buf[:size] and a_b_c", "\\*Command and buf\\[:size\\] and a\\_b\\_c\n"},
		{"one:\n\n  a_b  *\n  c\n\ntwo", "one:\n\n\n```\n  a_b  *\n  c\n\n```\n\ntwo\n"},
		{"one:\n  a", "one:\n\n```\n  a\n```\n"},
	} {
		if got := markdown(c.text); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// tree is a program with all that a page can lose.
func tree() *cobra.Command {
	root := &cobra.Command{Use: "prog VERB", Short: "A program"}
	verb := &cobra.Command{
		Use: "verb [--flag] FILE…", Short: "Do *it*", Example: "  prog verb '*_x'", Run: func(*cobra.Command, []string) {},
		Long: "Names such as *_x* and c->argc & [this] stay.\n\n  so   do_lines\n  as   *these*\n\nThe end.",
	}
	verb.Flags().StringP("clock", "c", "full", "a `MODE`: full or a_b_c")
	verb.Flags().Bool("json", false, "write JSON")
	hidden := &cobra.Command{Use: "secret", Hidden: true, Run: func(*cobra.Command, []string) {}}
	root.AddCommand(verb, hidden)
	return root
}

func TestPagesSayWhatHelpSays(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1000000000")
	dir := t.TempDir()
	if err := Write(tree(), dir, "1.2"); err != nil {
		t.Fatal(err)
	}
	got, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(got) != 2 || filepath.Base(got[0]) != "prog-verb.1" || filepath.Base(got[1]) != "prog.1" {
		t.Fatalf("%q, %v", got, err)
	}
	page, err := os.ReadFile(got[0])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(`\fB`, "", `\fP`, "", `\-`, "-", `\&`, "", `\_`, "_", `\[`, "[", `\]`, "]").Replace(string(page))
	for _, want := range []string{
		`"Sep 2001" "prog 1.2" "prog"`, "prog verb [--flag] FILE…", "Do *it*", "Names such as *_x* and c->argc & [this] stay.",
		"\n  so   do_lines\n  as   *these*\n", "-c, --clock=MODE", "a MODE: full or a_b_c (default full)", "--json[=false]", "prog verb '*_x'", "prog(1)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if page, err := os.ReadFile(got[1]); err != nil || !strings.Contains(string(page), "\n  verb         Do *it*\n") || strings.Contains(string(page), "secret") {
		t.Errorf("%v, verbs in\n%s", err, page)
	}
	if strings.Contains(text, "cobra") || strings.Contains(text, "`") {
		t.Errorf("what made the page shows in\n%s", text)
	}
}

func TestPagesAreForFoldersThatAreThere(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(dir, "missing")} {
		if err := Write(tree(), path, "1"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What stands behind the build tag is compiled by nothing else that tests run.
func TestTheVerbThatWritesPagesIsNotInTheProgram(t *testing.T) {
	for tags, want := range map[string]bool{"": false, "man": true} {
		out, err := exec.Command("go", "list", "-deps", "-tags", tags, "../..").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := strings.Contains(string(out), "github.com/spf13/cobra/doc"); got != want {
			t.Errorf("with tags %q the program has cobra/doc: %v", tags, got)
		}
	}
}
