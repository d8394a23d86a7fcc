// Package stub says what stubs are asked to do, and what it takes to put them in place, switch them and undo them; the code of each
// processor is in a package of its own below.
package stub
