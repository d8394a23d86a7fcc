// Package outfile makes the files that hold what was recorded. They are for their owner alone, unless somebody asks for more; and they may
// be made by root in a folder where another user, perhaps the owner of the process that is recorded, can make, rename and remove
// anything. So a name is taken only if it is free, or is to be replaced and may be; no symbolic link of another user's is followed; and a
// file that isn't whole yet has a name that nobody can guess.
//
// Below the folder that it was given, once that is open, the package works by what it has open and never by a path. How it came there is
// in [OpenFolder].
package outfile
