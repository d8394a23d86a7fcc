// Package isa is the roof over the instruction sets: each architecture is a package of its own below it, and only
// these packages know what an instruction looks like. What they have in common stands here.
package isa
