package rest

import (
	"encoding/json"
	"testing"
)

func TestNotesOfOtherVersionsAndPlacesAreLeftAlone(t *testing.T) {
	for _, test := range []struct {
		name, text string
		ok         bool
	}{
		{"good", `{"version":1,"folder":"/tmp/dumps","mode":384}`, true},
		{"of another version", `{"version":2,"folder":"/tmp/dumps"}`, false},
		{"with a folder that depends on where one is", `{"version":1,"folder":"dumps"}`, false},
		{"with a mode of no file", `{"version":1,"folder":"/tmp/dumps","mode":2147484000}`, false},
		{"empty", ``, false},
		{"cut off", `{"version":1,"folder":"/tm`, false},
	} {
		if _, err := parseAbout([]byte(test.text)); err == nil != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func FuzzParseAbout(f *testing.F) {
	b, err := json.Marshal(About{Version: version, Folder: "/tmp/dumps", Mode: 0o600, Began: 1, PID: 2, Start: 3})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseAbout(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := parseAbout(again); err != nil || c != a {
			t.Errorf("%+v became %+v, %v", a, c, err)
		}
	})
}
