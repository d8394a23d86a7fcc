// Package pace lets loops that look around every few milliseconds do so at the same moments, so that a sleeping processor is woken once for all
// of them.
package pace

import "time"

// Step is how far those moments are apart.
const Step = 5 * time.Millisecond

// Rest returns for how long to rest, from now on, instead of d: up to the moment that is nearest to when d would end. What is shorter than Step
// stays as it is, since nobody would rest so short who could wait.
func Rest(now time.Time, d time.Duration) time.Duration {
	if d < Step {
		return d
	}
	at := time.Duration(now.UnixNano())
	return (at+d+Step/2)/Step*Step - at
}
