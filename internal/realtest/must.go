package realtest

import "testing"

// Must ends the test if err is not nil: what is called must work for the test to say anything.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
