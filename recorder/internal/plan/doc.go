// Package plan decides which bytes of an image may be replaced so that each function's calls are seen, or why not; it emits nothing.
package plan
