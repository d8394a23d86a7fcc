// Package why says why one call was slow: it holds it against ordinary calls of the same function in the same reel.
package why
