package safejson

import (
	"encoding/json"
	"testing"
	"unicode"
)

func TestControlCharactersAreEscaped(t *testing.T) {
	for _, text := range []string{"", "plain <a&b>", `quoted "\`, "\x1b[31m", "del \x7f", "csi \u009b31m", "é 漢 \U0001F600", "bad \xff\x9b", "back \u202Eward\u2066", "tag \U000E0041"} {
		got, err := Marshal(map[string]string{"k": text})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range string(got) {
			if r < ' ' || r >= 0x7F && r <= 0x9F || unicode.Is(unicode.Cf, r) {
				t.Errorf("%q: %q holds %U", text, got, r)
			}
		}
		alone, err := Marshal(text)
		if appended := AppendString([]byte("x"), text); err != nil || string(appended) != "x"+string(alone) {
			t.Errorf("%q: appended as %s, want %s", text, appended, alone)
		}
		plain, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		var back map[string]string
		if json.Unmarshal(plain, &want) != nil || json.Unmarshal(got, &back) != nil || back["k"] != want {
			t.Errorf("%q: %s is read as %q", text, got, back["k"])
		}
	}
}
