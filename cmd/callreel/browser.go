package main

import (
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// errNoDesktop says that there is no browser to be opened.
var errNoDesktop = errors.New("there is no desktop here")

// openBrowser opens an address in the user's browser. Command lines are for everybody on the machine to read, and the address
// is a secret: so the browser is told to open a file of the user's own that leads there. forget removes it.
func openBrowser(url string) (forget func(), err error) {
	forget = func() {}
	opener, err := browserOpener()
	if err != nil {
		return forget, err
	}
	dir, err := os.MkdirTemp(privateFolder(), "callreel-") // for nobody else to read
	if err != nil {
		return forget, err
	}
	forget = func() { _ = os.RemoveAll(dir) } // what is left leads nowhere
	file := filepath.Join(dir, "callreel.html")
	text := fmt.Sprintf("<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"+
		"<meta http-equiv=\"refresh\" content=\"0; url=%[1]s\">\n<title>callreel</title>\n<a href=\"%[1]s\">callreel</a>\n", html.EscapeString(url))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return forget, err
	}
	cmd := exec.Command(opener, "file://"+file)
	if err := cmd.Start(); err != nil { // its output is nobody's: browsers say all kinds of things
		return forget, err
	}
	go func() { _ = cmd.Wait() }() // it says nothing that helps
	return forget, nil
}

// browserOpener finds the program that opens addresses.
func browserOpener() (string, error) {
	name := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		name = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return "", errNoDesktop
	}
	return exec.LookPath(name)
}
