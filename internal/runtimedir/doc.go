// Package runtimedir finds the folder where a user's running recorders keep what nobody else may read, write or take the name of: their
// control sockets, and the key that their marks are made with.
package runtimedir
