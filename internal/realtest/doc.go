// Package realtest starts the real programs that tests check callreel against:
// the self-checking C targets of testdata/targets, redis, nginx, python, and
// the callreel binary itself; and says when a test cannot be run.
//
// Everything it starts listens on loopback only, lives in a temporary folder,
// and is ended by its process ID when the test that started it is over. A
// missing program skips the test with a message that names the [Capability];
// with CI set in the environment it fails instead.
package realtest
