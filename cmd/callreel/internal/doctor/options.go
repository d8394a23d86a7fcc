package doctor

// Options say what the checks of a machine may use.
type Options struct {
	// Self is a callreel, whose verb demangle serves as a process to try things on.
	Self string
	// Folder is where reels are to be written.
	Folder string
}
