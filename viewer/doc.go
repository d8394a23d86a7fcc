// Package viewer serves reels to a browser: an embedded page, and an API below a random token that answers with what a screen can
// show, never with the whole recording.
//
// What the API has is listed in api.go. Whoever knows the token may read the reels; so the server listens on loopback, refuses
// requests under any name but its own (DNS rebinding), and answers its API only to its own page.
package viewer
