package probe

import (
	"os"
	"testing"
)

// need skips a test for want of something on this machine; in CI that is a failure.
func need(t testing.TB, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s: %v", what, err)
	}
	t.Skipf("needs %s: %v", what, err)
}
