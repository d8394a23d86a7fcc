// Package imagetree finds the images below a folder, and which of them belong together.
package imagetree
