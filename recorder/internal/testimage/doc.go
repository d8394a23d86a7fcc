// Package testimage gives tests the images that plans and stubs are tried on: those of installed programs, and made-up ones.
package testimage
