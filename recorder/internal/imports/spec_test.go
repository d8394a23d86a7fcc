package imports

import (
	"testing"
)

func TestWhatIsAskedForIsALibraryAndAFunction(t *testing.T) {
	for text, want := range map[string][2]string{
		"libssl.so*:SSL_*": {"libssl.so*", "SSL_*"}, "*:read": {"*", "read"}, "lib.so:a::b(int)": {"lib.so", "a::b(int)"},
		"SSL_read": {}, ":read": {}, "lib.so:": {}, "std::sort": {}, "lib[:x": {}, "": {},
	} {
		s, err := parse(text)
		if want[0] == "" {
			if err == nil {
				t.Errorf("%q is %+v", text, s)
			}
			continue
		}
		if err != nil || s.library != want[0] || s.function != want[1] {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("libssl.so*:SSL_*")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := parse(text); err == nil && (s.library == "" || s.function == "" || s.library+":"+s.function != text) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}
