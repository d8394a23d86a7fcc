package stub

// Switch is an event of a function, as it can be switched off and on.
type Switch struct {
	At   uint32 // offset in the code, a multiple of 8
	Exit bool
	// Mark is the ID of the marker whose event it is, 0 for one of calls.
	Mark uint32
	// Mask are the bits of the word at At that change, On and Off what they are. Unmade is what they are while it is on, of an
	// entry whose probe isn't made yet and that changes there; 0 for others.
	Mask, On, Off, Unmade uint64
}

// In returns what the word is to be that was v.
func (s *Switch) In(v uint64, on, made bool) uint64 {
	to := s.Off
	if on {
		to = s.On
		if !made && s.Unmade != 0 {
			to = s.Unmade
		}
	}
	return v&^s.Mask | to
}

// IsOn says whether the event is on in a word.
func (s *Switch) IsOn(v uint64) bool { return v&s.Mask != s.Off }
