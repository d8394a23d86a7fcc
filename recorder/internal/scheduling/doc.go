// Package scheduling puts into reels what the kernel's scheduler did with the recorded threads, and what they waited for.
package scheduling
