package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

var day = time.Date(2026, 11, 23, 23, 59, 0, 0, time.FixedZone("", -7200)) // the 24th in Greenwich

func TestPackageVersion(t *testing.T) {
	for describe, want := range map[string]string{
		"v1.2.3":                       "1.2.3",
		"1.2":                          "1.2",
		"v1.2.3-dirty":                 "1.2.3+dirty",
		"v1.2.3-rc.1":                  "1.2.3~rc.1",
		"v1.2.3-4-gabcdef012345":       "1.2.3+git20261124.4.abcdef012345",
		"v1.2.3-rc1-4-gabcdef0-dirty":  "1.2.3~rc1+git20261124.4.abcdef0+dirty",
		"1431da4":                      "0~git20261124.1431da4",
		"1234567":                      "0~git20261124.1234567",
		"abcdef012345abcdef-dirty":     "0~git20261124.abcdef012345abcdef+dirty",
		"":                             "",
		"unknown":                      "",
		"v1.2.3; rm -rf /":             "",
		"v1.2.3\n":                     "",
		"nightly-4-gabcdef0":           "",
		"v1.2.3-4-gabcdef0-dirty-more": "",
	} {
		got, err := packageVersion(describe, day)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", describe, got, err, want)
		}
	}
}

// Each of these comes after the one before, for those who decide on it.
func TestPackageVersionsSortAsTheyWereMade(t *testing.T) {
	realtest.Need(t, realtest.RPM, "dpkg")
	var versions []string
	for _, describe := range []string{
		"1431da4", "v0.9.0", "v1.0.0-rc1", "v1.0.0-rc1-2-gabcdef0", "v1.0.0-rc2", "v1.0.0", "v1.0.0-2-gabcdef0", "v1.0.0-10-gabcdef0",
		"v1.0.1", "v1.10.0",
	} {
		v, err := packageVersion(describe, day)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, v)
	}
	for i, later := range versions[1:] {
		earlier := versions[i]
		if out, err := exec.Command("dpkg", "--compare-versions", earlier, "lt", later).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("dpkg: %s is not before %s: %v %s", earlier, later, err, out)
		}
		out, err := exec.Command("rpm", "--eval", `%{lua: print(rpm.vercmp("`+earlier+`", "`+later+`"))}`).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "-1" {
			t.Errorf("rpm: %s is not before %s: %v %s", earlier, later, err, out)
		}
	}
}
