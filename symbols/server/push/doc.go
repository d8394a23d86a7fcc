// Package push sends debug files, executables and source files to a symbol server.
package push
