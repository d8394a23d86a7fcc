// Package ownfolder tells the folders and files that only this process's user, or root,
// can change from those that others can: what is kept in the former may be believed, and
// root may write there.
package ownfolder
