// Package demo is the small C server with one planted slow request, and its load: built from source and started.
package demo
