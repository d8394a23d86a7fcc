// Package imports tells where the slots of a process's images lead, and whether the dynamic linker would have put that there.
package imports
