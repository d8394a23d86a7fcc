package process

// Android's C library (bionic) keeps a thread's ID in a descriptor, to which the thread pointer leads: TLS_SLOT_THREAD_ID, and the third member
// of pthread_internal_t (next, prev, tid).
const (
	DescriptorAt = 8  // bytes from the thread pointer: a pointer to the descriptor
	DescriptorID = 16 // bytes from there: the ID, of 32 bits
)
