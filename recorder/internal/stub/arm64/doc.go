// Package arm64 makes the code of stubs for AArch64: docs/design/stubs-arm64.md says what it is made of, and why it is right.
package arm64
