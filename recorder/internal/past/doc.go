// Package past keeps what armed rings have held: encoded, in bounded memory, the oldest of all threads being dropped first.
package past
