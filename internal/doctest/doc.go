// Package doctest reads this repository's documents (*.md), for the tests that check them against the program: their links, and the
// commands that they show.
package doctest
