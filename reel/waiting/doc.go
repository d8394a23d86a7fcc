// Package waiting says what threads of a reel waited for while they were blocked, who let them go on, and what that thread did meanwhile.
package waiting
