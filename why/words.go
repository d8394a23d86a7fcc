package why

import (
	"fmt"
	"strconv"
	"strings"
)

// took writes a time in nanoseconds with three or four digits.
func took(ns uint64) string {
	v, unit := float64(ns), "ns"
	switch {
	case ns >= 1e9:
		v, unit = v/1e9, "s"
	case ns >= 1e6:
		v, unit = v/1e6, "ms"
	case ns >= 1e3:
		v, unit = v/1e3, "µs"
	default:
		return fmt.Sprintf("%d ns", ns)
	}
	switch {
	case v >= 100:
		return fmt.Sprintf("%.1f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}

// number writes a number with its thousands apart.
func number(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// many writes a number and its noun.
func many(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}

// percent writes a share.
func percent(share float64) string {
	p := 100 * share
	if p > 99 && p < 99.95 {
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}

// route writes a path; the middle of a long one is left out.
func route(path []string) string {
	const most = 6
	if len(path) > most {
		path = append(append(append([]string{}, path[:2]...), "…"), path[len(path)-most+3:]...)
	}
	names := make([]string, len(path))
	for i, name := range path {
		names[i] = brief(name)
	}
	return strings.Join(names, " > ")
}

// longName is up to how many bytes a name is written whole.
const longName = 80

// brief is a name for a line of text: of a long one what is in brackets is left out.
func brief(name string) string {
	if len(name) <= longName {
		return name
	}
	var b strings.Builder
	depth := 0
	for i, c := range name {
		opens := c == '(' || c == '<' && !strings.HasSuffix(strings.TrimSuffix(name[:i], "<"), "operator")
		closes := c == ')' || c == '>' && !strings.HasSuffix(name[:i], "-") && !strings.HasSuffix(strings.TrimSuffix(name[:i], ">"), "operator")
		if closes && depth > 0 {
			depth--
		}
		if depth == 0 {
			b.WriteRune(c)
		}
		if opens {
			if depth++; depth == 1 {
				b.WriteString("…")
			}
		}
	}
	return b.String()
}

// inState says in words what a thread did.
func inState(state string) string {
	switch state {
	case "cpu":
		return "running on a CPU"
	case "ready":
		return "ready to run, but on no CPU"
	case "blocked":
		return "blocked"
	}
	return ""
}
