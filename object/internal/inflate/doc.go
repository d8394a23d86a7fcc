// Package inflate decodes zlib streams whose decoded size is known, from one buffer
// into another: what compressed debug sections are. Giving up streaming makes it
// about twice as fast as the decoders that have to stop at any byte.
package inflate
