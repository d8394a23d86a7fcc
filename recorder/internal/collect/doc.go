// Package collect carries what threads write into the rings to where it goes: it drains the rings in rounds, knows whose the events are,
// notices when threads begin, end and get other names, and hands each thread's events on in their order.
package collect
