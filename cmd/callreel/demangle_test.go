package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/callreel/callreel/demangle"
)

func TestDemangleWritesALineForEachLine(t *testing.T) {
	const in = "_Z1fi\nmain\n\n_ZN2ns1gIiEEvT_\nraw \xff\x1b bytes\r\n_Z1fi"
	a := callreel(in, "demangle")
	if want := "f(int)\nmain\n\nvoid ns::g<int>(int)\nraw \xff\x1b bytes\r\nf(int)"; a.code != exitDone || a.stdout != want {
		t.Errorf("code %d, %q, want %q", a.code, a.stdout, want)
	}
	a = callreel(in, "demangle", "--short")
	if want := "f\nmain\n\nns::g\nraw \xff\x1b bytes\r\nf"; a.code != exitDone || a.stdout != want {
		t.Errorf("--short: code %d, %q, want %q", a.code, a.stdout, want)
	}
	a = callreel(in, "demangle", "_Z1fi", "main")
	if want := "f(int)\nmain\n"; a.code != exitDone || a.stdout != want {
		t.Errorf("arguments: code %d, %q, want %q", a.code, a.stdout, want)
	}
}

func TestDemangleLetsLinesThroughThatAreTooLong(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	in := long + "\n_Z1fi\n_Z" + long + "\n" + long + "_Z1fi\n"
	if got := callreel(in, "demangle").stdout; got != strings.Replace(in, "\n_Z1fi\n", "\nf(int)\n", 1) {
		t.Errorf("%d bytes became %d", len(in), len(got))
	}
}

func TestDemangleAnswersBeforeItAsksForMore(t *testing.T) {
	r, w := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := demangleLines(r, out, demangle.Name)
		out.Close()
		done <- err
	}()
	buf := make([]byte, 64)
	for range 3 {
		if _, err := io.WriteString(w, "_Z1fi\n"); err != nil {
			t.Fatal(err)
		}
		n, err := answers.Read(buf)
		if err != nil || string(buf[:n]) != "f(int)\n" {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	w.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func FuzzDemangleKeepsLines(f *testing.F) {
	f.Add([]byte("_Z1fi\nmain\n"))
	f.Add(bytes.Repeat([]byte("_Z"), 40_000))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		if err := demangleLines(bytes.NewReader(in), &out, func(s string) string { return s }); err != nil || !bytes.Equal(out.Bytes(), in) {
			t.Fatalf("%d bytes became %d (%v)", len(in), out.Len(), err)
		}
		out.Reset()
		if err := demangleLines(bytes.NewReader(in), &out, demangle.Name); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != bytes.Count(in, []byte("\n")) {
			t.Fatalf("lines: %q became %q (%v)", in, out.Bytes(), err)
		}
	})
}

func TestDemangleTakesGNATsNamesIfAsked(t *testing.T) {
	const names = "uv__io_poll\nada__text_io__put\n_D1a1fFiZv\n"
	for flag, want := range map[string]string{"": "uv__io_poll\nada.text_io.put\na.f(int)\n", "--ada": "uv.io_poll\nada.text_io.put\na.f(int)\n"} {
		args := []string{"demangle"}
		if flag != "" {
			args = append(args, flag)
		}
		if a := callreel(names, args...); a.stdout != want {
			t.Errorf("%v: %q, want %q", args, a.stdout, want)
		}
	}
}
