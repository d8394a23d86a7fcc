// Package rest keeps notes of armed recordings, with which whoever comes after a recorder that was killed can read what the rings still hold.
package rest
