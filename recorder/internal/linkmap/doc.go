// Package linkmap follows the dynamic loader's list of libraries in a process, which it keeps for debuggers.
package linkmap
