package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

var (
	tagged = regexp.MustCompile(`^v?(\d+(?:\.\d+)+)(?:-([a-z]+[a-z0-9.]*))?(?:-(\d+)-g([0-9a-f]{4,64}))?$`)
	commit = regexp.MustCompile(`^[0-9a-f]{4,64}$`)
)

// packageVersion turns what git describe says into a version that dpkg and rpm take and sort rightly: v1.2.3-rc1 comes
// before v1.2.3, what was committed after a tag comes after it, and what has no tag before it comes before all. Neither
// takes a dash there: it separates a packager's revision.
func packageVersion(describe string, date time.Time) (string, error) {
	git := "git" + date.UTC().Format("20060102")
	text, dirty := strings.CutSuffix(describe, "-dirty")
	var version string
	if m := tagged.FindStringSubmatch(text); m != nil {
		number, candidate, commits, hash := m[1], m[2], m[3], m[4]
		version = number
		if candidate != "" {
			version += "~" + candidate
		}
		if commits != "" {
			version += "+" + strings.Join([]string{git, commits, hash}, ".")
		}
	} else if commit.MatchString(text) {
		version = "0~" + git + "." + text
	} else {
		return "", fmt.Errorf("version %q: git describe gives a tag as v1.2.3, or a commit; set VERSION to one", describe)
	}
	if dirty {
		version += "+dirty"
	}
	return version, nil
}
