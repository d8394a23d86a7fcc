// Package hostile holds tests in which root records processes of a user that lies about everything: descriptors, process IDs, recovery
// records, sizes, names. They run the real callreel on real processes; docs/design/trust.md says what each of them tries.
package hostile
