// Package symbolize is the offline end of a stack capture: it turns images and
// addresses, as JSON or as text of many shapes, into functions, files and lines.
//
// An address goes through four steps: the image that holds it (a binary search
// over the load addresses), the slide of that image (its load address minus its
// link address), the link address to ask for (one less for return addresses, since
// those are behind the call), and the image's symbol map, which gives every inline
// frame. An address that ends without a name says why.
//
// Input is untrusted: lines, values and lists are bounded, and what is made of them
// grows with their length only.
package symbolize
