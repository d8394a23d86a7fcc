// Package crash reads crash reports of many formats into one form: threads with registers and
// stacks, images with their IDs, and the reason.
//
// A report that holds memory (minidumps, cores) is walked here: each frame says whether it comes
// from the thread's registers, from call frame information, from the frame pointer, or was found
// by a scan of the stack. A report that holds stacks keeps them. Both are named by package
// symbolize, and what the report itself calls a function stays where symbols know nothing.
//
// Every byte of a report is untrusted. Sizes are checked before memory is taken, walks stay in
// memory that the report says is mapped, and every stack that is not whole says why.
package crash
